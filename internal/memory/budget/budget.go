// Package budget has the room of a call of a model: what a caller reserves, what the counts
// of providers have shown of the counts of a memory, and the errors about calls without room.
package budget

import (
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// Budget is the room of one call of a model. The zero Budget has no limit.
type Budget struct {
	Model         string // the provider's name of the model, for errors and `qtype memory explain`
	ContextWindow int    // tokens that the model reads and writes in one call; 0 if unknown, for no limit
	Answer        int    // tokens reserved for the answer
	Tools         int    // tokens of the descriptions of tools, and of what the caller of the run adds
	Passages      int    // tokens of the passages that the answer may cite
	// Margin is how many times the tokens of messages that the provider has not counted
	// yet are taken, while old rounds can be left out. 0 and 1 are for exact counts.
	Margin float64

	learned  bool // whether ContextWindow is what the provider reported
	declared int  // then the ContextWindow of the caller
}

// Added returns the tokens of what a call sends besides messages and context.
func (b Budget) Added() int { return b.Tools + b.Passages }

// Error reports that the newest round does not fit into a model's context window.
type Error struct {
	Budget           // the room
	Memory   string  // the memory's id
	System   int     // tokens of the system message
	Context  int     // tokens of the context that is never cut
	Pinned   int     // tokens of the pinned messages of older rounds
	Round    int     // tokens of the newest round
	Messages int     // its messages
	Factor   float64 // the provider's count, divided by this memory's; 1 if the provider has counted nothing yet
	Template int     // tokens left for the template of the chat
}

// Error names the sizes.
func (e *Error) Error() string {
	parts := []string{fmt.Sprintf("the newest round (%s, %s tokens)", textfmt.Count(e.Messages, "message"), textfmt.Thousands(e.Round))}
	for _, p := range []struct {
		name   string
		tokens int
	}{{"the pinned messages", e.Pinned}, {"the system message", e.System}, {"the context that is never cut", e.Context}, {"the tools", e.Tools}, {"the passages", e.Passages}, {"the answer", e.Answer}} {
		if p.tokens > 0 {
			parts = append(parts, fmt.Sprintf("%s (%s)", p.name, textfmt.Thousands(p.tokens)))
		}
	}
	list := parts[0]
	if last := len(parts) - 1; last > 0 {
		list = strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	model := "the model"
	if e.Model != "" {
		model = "model " + e.Model
	}
	text := fmt.Sprintf("memory %s: %s reads and writes %s tokens in one call, but %s need %s",
		e.Memory, model, textfmt.Thousands(e.ContextWindow), list, textfmt.Thousands(e.Round+e.Pinned+e.System+e.Context+e.Added()+e.Answer))
	if e.Factor > 1 {
		text += fmt.Sprintf(" and up to %.1f times as many by the provider's count of earlier calls", e.Factor)
	}
	return text
}

// EmptyWindowError reports that the newest message does not fit into the
// window, so that there is nothing to send.
type EmptyWindowError struct {
	Memory string     // the memory's id
	Used   int        // size of the newest message and the system message
	Limit  int        // the window's limit
	Unit   store.Unit // unit of both
}

// Error names the sizes.
func (e *EmptyWindowError) Error() string {
	return fmt.Sprintf("memory %s: the newest message alone exceeds the window's limit of %s %s: with the system message it has %s",
		e.Memory, textfmt.Thousands(e.Limit), e.Unit, textfmt.Thousands(e.Used))
}

// TurnSizeError reports that the limit of a policy has no room for what each call of a
// turn needs: the system message, the question, and the newest tool call with its results.
type TurnSizeError struct {
	Memory string     // the memory's id
	Used   int        // size of these messages
	Limit  int        // the window's limit
	Unit   store.Unit // unit of both
	Pinned int        // number of pinned messages among them
}

// Error names the sizes.
func (e *TurnSizeError) Error() string {
	pinned, advice := "", ""
	if e.Pinned > 0 {
		pinned, advice = textfmt.Count(e.Pinned, "pinned message")+", ", ", unpin messages"
	}
	return fmt.Sprintf("memory %s: the window's limit is %s %s, but the system message, %sthe question and the newest messages of the turn have %s: increase the limit%s or shorten the results of tools",
		e.Memory, textfmt.Thousands(e.Limit), e.Unit, pinned, textfmt.Thousands(e.Used), advice)
}
