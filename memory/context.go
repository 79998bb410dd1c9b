package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// BlockKind is what a context block holds.
type BlockKind string

// The kinds of context blocks (reference memory.md 6).
const (
	Pinned    BlockKind = "pinned"    // a text that is always sent
	Variables BlockKind = "variables" // the session's named values
	Summary   BlockKind = "summary"   // what was flushed, folded into a running summary
	Retrieval BlockKind = "retrieval" // what was flushed and is most similar to the newest user message
)

// Block is one of the things that a memory sends to the model beside the chat
// messages. The blocks of a memory share what chat_history_token_ratio and the
// messages leave of token_limit.
type Block struct {
	Kind     BlockKind // what it holds
	Priority int       // where all are too large together the highest number is cut first; 0 is never cut

	Text string // pinned: the text

	Summarizer   Summarizer // summary: writes it; required
	MaxTokens    int        // summary: the most tokens of it; 0: 2,000
	Instructions string     // summary: how to write it; empty: DefaultInstructions
	FoldTokens   int        // summary: the most tokens of messages in one call, what is over comes with the next; 0: 16,000

	Embedder Embedder // retrieval: makes vectors of texts; required
	TopK     int      // retrieval: the most messages; 0: 5
}

const (
	defaultSummary      = 2_000 // tokens
	defaultTopK         = 5
	defaultSummaryBatch = 16_000 // tokens
)

// Summarizer folds messages into a running summary: a model, most often. It is
// safe for concurrent use.
type Summarizer interface {
	// Summarize answers the new summary. An error leaves the old one, and the
	// same messages come again with the next call.
	Summarize(ctx context.Context, f SummaryRequest) (string, error)
}

// SummaryRequest is what one call of a Summarizer works on.
type SummaryRequest struct {
	Instructions string         // how the summary is to be written
	Summary      string         // the summary so far, empty where there is none
	Messages     []chat.Message // what is to be folded into it, oldest first; nobody changes them
	MaxTokens    int            // how long the new summary may be; a longer one is cut at its end
	Room         int            // the most tokens that the messages may take together; a single one may have more
}

// Embedder makes vectors of texts. It is safe for concurrent use.
type Embedder interface {
	// Name tells one model from another: vectors of different models cannot be
	// compared, so under another name they are made anew. An error says that the
	// model cannot be asked.
	Name() (string, error)
	// Embed makes a vector of each text, in their order, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// contextBuilder is the context of a memory: its blocks, in the document's order.
type contextBuilder struct {
	blocks    []Block
	summary   *Block      // nil without one
	retrieval *Block      // nil without one
	shelves   vectorCache // the vectors that were used last
	warn      func(string)
}

// newComposer checks the blocks that a configuration declares; nil where there are none.
func newComposer(cfg *Config) (*contextBuilder, error) {
	if len(cfg.Context) == 0 {
		return nil, nil
	}
	if cfg.Policy != spec.PolicyFlush && cfg.Policy != "" {
		return nil, fmt.Errorf("memory %s: context is for policy flush, not %s", cfg.ID, cfg.Policy)
	}
	c := &contextBuilder{blocks: slices.Clone(cfg.Context), warn: warnOnce(cfg.Warn)}
	seen := map[BlockKind]bool{}
	for i := range c.blocks {
		b := &c.blocks[i]
		if err := b.check(); err != nil {
			return nil, fmt.Errorf("memory %s: context block %d: %w", cfg.ID, i+1, err)
		}
		if seen[b.Kind] && b.Kind != Pinned {
			return nil, fmt.Errorf("memory %s: context block %d: only one block of kind %s is possible", cfg.ID, i+1, b.Kind)
		}
		seen[b.Kind] = true
		switch b.Kind {
		case Summary:
			c.summary = b
		case Retrieval:
			c.retrieval = b
		}
	}
	return c, nil
}

// check refuses what cannot be, and sets the defaults.
func (b *Block) check() error {
	switch {
	case b.Priority < 0:
		return fmt.Errorf("the priority must not be negative, not %d", b.Priority)
	case b.Kind == Summary && b.Summarizer == nil:
		return errors.New("a summary needs a summarizer")
	case b.Kind == Retrieval && b.Embedder == nil:
		return errors.New("retrieval needs an embedder")
	case b.MaxTokens < 0 || b.TopK < 0 || b.FoldTokens < 0:
		return errors.New("what a block may take at most must be positive")
	case !slices.Contains([]BlockKind{Pinned, Variables, Summary, Retrieval}, b.Kind):
		return fmt.Errorf("unknown kind %q: it is pinned, variables, summary or retrieval", b.Kind)
	}
	b.Text = validText(b.Text)
	if b.MaxTokens == 0 {
		b.MaxTokens = defaultSummary
	}
	if b.FoldTokens == 0 {
		b.FoldTokens = defaultSummaryBatch
	}
	if b.TopK == 0 {
		b.TopK = defaultTopK
	}
	if b.Instructions == "" {
		b.Instructions = DefaultInstructions
	}
	return nil
}

// ContextError says that what is never cut of a memory's context, its blocks of
// priority 0, does not fit into token_limit beside the messages.
type ContextError struct {
	Memory   string // the memory's id
	Limit    int    // token_limit
	Messages int    // tokens of the chat messages
	System   int    // tokens of the system message
	Context  int    // tokens of the blocks that are never cut
}

// Error gives the numbers.
func (e *ContextError) Error() string {
	parts := fmt.Sprintf("the messages (%s)", thousands(e.Messages))
	if e.System > 0 {
		parts += fmt.Sprintf(", the system message (%s)", thousands(e.System))
	}
	return fmt.Sprintf("memory %s: token_limit is %s, but %s and the context that is never cut (%s: blocks of priority 0) need %s",
		e.Memory, thousands(e.Limit), parts, thousands(e.Context), thousands(e.Messages+e.System+e.Context))
}

// ContextBlockReport is what became of one context block in a call, or would become in the next.
type ContextBlockReport struct {
	Block    BlockKind `json:"block"`             // what it holds
	Priority int       `json:"priority"`          // what is cut first: the highest
	Tokens   int       `json:"tokens"`            // what it took, about: the blocks are counted together
	Units    int       `json:"units"`             // lines of text, values or messages that were sent
	Cut      int       `json:"cut,omitempty"`     // how many of them had no room
	Found    []int64   `json:"found,omitempty"`   // retrieval: the places in the history of what was sent
	Through  int64     `json:"through,omitempty"` // summary: the newest message that is part of it
	Problem  string    `json:"problem,omitempty"` // why a block is older or emptier than it should be
	Text     string    `json:"text,omitempty"`    // what was sent; not kept in events
	Pending  bool      `json:"pending,omitempty"` // retrieval: it is found when the next message is said
	Stable   bool      `json:"-"`                 // it stands with the system message, not before the newest user message
}

// warnOnce is warn for messages that were not said before; nil says nothing.
func warnOnce(warn func(string)) func(string) {
	if warn == nil {
		return func(string) {}
	}
	var said seenWarnings
	return func(text string) {
		if said.shouldWarn(text) {
			warn(text)
		}
	}
}

// lines are the lines of a text that say something, without blanks at their ends.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}
