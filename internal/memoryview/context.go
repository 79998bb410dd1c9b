package memoryview

import (
	"context"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Context is what the next call of a model sends of a session, by its parts.
type Context struct {
	Memory        string     `json:"memory"`                   // the memory's id
	Used          int        `json:"used"`                     // of Limit, by the messages
	Limit         int        `json:"limit"`                    // 0: none
	Unit          store.Unit `json:"unit"`                     // unit of Used and Limit
	Model         string     `json:"model,omitempty"`          // of the last call
	ContextWindow int        `json:"context_window,omitempty"` // of that model, in tokens; 0 if unknown
	Blocks        []Block    `json:"blocks"`                   // in the order in which they are sent
	Flushes       []Flush    `json:"flushes"`                  // the newest ones, oldest first
	Summary       string     `json:"summary,omitempty"`        // the running summary
	Refused       string     `json:"refused,omitempty"`        // why the next call would be refused
	Through       int64      `json:"-"`                        // position of the newest message that the summary covers
}

// Block is a part of what is sent.
type Block struct {
	Kind   string `json:"kind"`           // system, messages, or the kind of a context block
	Role   string `json:"role,omitempty"` // system: the role
	Tokens int    `json:"tokens"`         // its size
	Units  int    `json:"units"`          // messages, lines of text or values
	Text   string `json:"text,omitempty"` // not that of messages
	Cut    int    `json:"cut,omitempty"`  // how many units had no room
}

// Flush is an eviction of messages.
type Flush struct {
	Time     time.Time `json:"time"`     // when the messages left
	Turn     int64     `json:"turn"`     // the turn in which they left
	From     int64     `json:"from"`     // position of the first message
	To       int64     `json:"to"`       // position of the last one
	Messages int       `json:"messages"` // number of messages
	Tokens   int       `json:"tokens"`   // their tokens
	Reason   string    `json:"reason"`   // the rule with its numbers
}

const maxFlushes = 100

// ContextOf returns the context of a session as committed. No model is called:
// retrieved messages depend on the message that is still to come.
func ContextOf(ctx context.Context, m Memory, session string) (*Context, error) {
	window, err := m.Window(ctx, session)
	if err != nil {
		return nil, err
	}
	preview, err := m.PreviewContext(ctx, session)
	if err != nil {
		return nil, err
	}
	c := &Context{Memory: m.ID, Used: window.Used, Limit: window.Limit, Unit: window.Unit, Blocks: []Block{}, Flushes: []Flush{}}
	if s := window.System; s != nil {
		c.Blocks = append(c.Blocks, Block{Kind: "system", Role: string(s.Message.Role), Tokens: s.Tokens, Units: 1, Text: s.Message.Text()})
	}
	if preview != nil {
		c.addParts(preview)
	}
	tokens := 0
	for _, e := range window.Entries {
		tokens += e.Tokens
	}
	c.Blocks = append(c.Blocks, Block{Kind: "messages", Tokens: tokens, Units: len(window.Entries)})
	if c.Summary, err = promptcontext.SummaryOf(ctx, m.Memory, session); err != nil {
		return nil, err
	}
	return c, c.addEvents(ctx, m, session)
}

func (c *Context) addParts(p *memory.ContextPreview) {
	for _, part := range p.Parts {
		c.Blocks = append(c.Blocks, Block{Kind: string(part.Block), Tokens: part.Tokens, Units: part.Units, Text: part.Text, Cut: part.Cut})
		c.Through = max(c.Through, part.Through)
	}
	if p.Refused != nil {
		c.Refused = p.Refused.Error()
	}
}

// addEvents adds the flushes, and the model of the last call.
func (c *Context) addEvents(ctx context.Context, m Memory, session string) error {
	for e, err := range m.Events(ctx, session) {
		switch {
		case err != nil:
			return err
		case e.Kind == store.EventSent && e.Call != nil:
			c.Model, c.ContextWindow = e.Call.Model, e.Call.ContextWindow
		case e.Kind == store.EventFlush:
			c.Flushes = append(c.Flushes, Flush{e.Time, e.Turn, e.From, e.To, e.Messages, e.Tokens, e.Reason})
		case e.Kind == store.EventRewind: // what these turns evicted returned
			c.Flushes = slices.DeleteFunc(c.Flushes, func(f Flush) bool { return f.Turn >= e.Rewound })
		}
	}
	c.Flushes = c.Flushes[max(len(c.Flushes)-maxFlushes, 0):]
	return nil
}
