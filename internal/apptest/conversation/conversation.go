// Package conversation makes tests of stored conversations: the turns with their inputs, and mocks that answer as
// the models and tools did.
package conversation

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Turn is a question of a conversation and what followed.
type Turn struct {
	Number int64    // in the conversation, from 1
	Input  string   // the question
	Rounds []*Round // the answers of the model, in order
	Failed bool     // it ended with an error
}

// Round is an answer of a model.
type Round struct {
	Text    string
	Calls   []chat.ToolCall
	Results map[string]string // what tools answered, by the ids of the calls
}

// Read returns the turns of a conversation up to a number; 0 for all. Turns that failed, but for the one with the number, and messages that were rewound, deleted
// or replaced are not part of it. redact replaces the secrets in all texts.
func Read(history iter.Seq2[store.Entry, error], until int64, redact func(string) string) ([]*Turn, error) {
	var turns []*Turn
	for e, err := range history {
		if err != nil {
			return nil, err
		}
		if until > 0 && e.Turn > until {
			break
		}
		if isAsked := until > 0 && e.Turn == until; e.Status != store.InWindow && e.Status != store.Flushed && (e.Status != store.Failed || !isAsked) {
			continue
		}
		if e.Message.Role == chat.User {
			if i := slices.IndexFunc(e.Message.Blocks, func(b chat.Block) bool { return !b.IsText() }); i >= 0 {
				return nil, fmt.Errorf("turn %d has a part of type %s: only questions of text can be inputs of a test", e.Turn, e.Message.Blocks[i].Type)
			}
			turns = append(turns, &Turn{Number: e.Turn, Failed: e.Status == store.Failed, Input: redact(e.Message.TextWithoutMemory())})
			continue
		}
		if len(turns) > 0 {
			turns[len(turns)-1].add(e.Message, redact)
		}
	}
	switch {
	case len(turns) == 0:
		return nil, fmt.Errorf("the conversation has no turn")
	case until > 0 && turns[len(turns)-1].Number != until:
		return nil, fmt.Errorf("the conversation has no turn %d: the last one before is %d", until, turns[len(turns)-1].Number)
	}
	return turns, nil
}

// LacksAnswer reports whether the turn failed after an answer that is not stored: calls of tools were answered, and nothing follows.
func (t *Turn) LacksAnswer() bool {
	return t.Failed && (len(t.Rounds) == 0 || len(t.Rounds[len(t.Rounds)-1].Calls) > 0)
}

// add adds an answer, or the result of a tool.
func (t *Turn) add(m chat.Message, redact func(string) string) {
	switch m.Role {
	case chat.Assistant:
		r := &Round{Text: redact(m.Text()), Results: map[string]string{}}
		for _, c := range m.Calls() {
			c.Arguments = redact(c.Arguments)
			r.Calls = append(r.Calls, c)
		}
		t.Rounds = append(t.Rounds, r)
	case chat.Tool, chat.Function:
		for _, r := range t.Rounds {
			if slices.ContainsFunc(r.Calls, func(c chat.ToolCall) bool { return c.ID == m.ToolCallID }) {
				r.Results[m.ToolCallID] = redact(m.Text())
			}
		}
	}
}

// calls returns the calls of a turn with their results, in order.
func (t *Turn) calls() iter.Seq2[chat.ToolCall, string] {
	return func(yield func(chat.ToolCall, string) bool) {
		for _, r := range t.Rounds {
			for _, c := range r.Calls {
				if !yield(c, r.Results[c.ID]) {
					return
				}
			}
		}
	}
}

// resultOf returns the result of a tool as a value, or its error: what the model got has the form "error: tool ID: …".
func resultOf(id, text string) (result any, failed string) {
	if reason, ok := strings.CutPrefix(text, "error: "); ok {
		return nil, strings.TrimPrefix(reason, "tool "+id+": ")
	}
	var v any
	if json.Unmarshal([]byte(text), &v) == nil && v != nil {
		return v, ""
	}
	return text, ""
}

// Calls returns the number of calls of models and tools in turns.
func Calls(turns []*Turn) int {
	n := 0
	for _, t := range turns {
		n += len(t.Rounds)
		for range t.calls() {
			n++
		}
	}
	return n
}
