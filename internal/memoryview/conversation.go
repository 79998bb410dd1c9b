package memoryview

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

func (v *View) printer() *show.Printer { return &show.Printer{Out: v.Out, Width: v.Width, Raw: v.Raw} }

// Page selects messages of a session by their positions.
type Page struct {
	From  int64 // the first position; 0: the beginning
	Limit int   // the most messages; 0: all
}

// of returns the selected entries.
func (p Page) of(entries []*memory.Entry) []*memory.Entry {
	for len(entries) > 0 && entries[0].Seq < p.From {
		entries = entries[1:]
	}
	if p.Limit > 0 && len(entries) > p.Limit {
		entries = entries[:p.Limit]
	}
	return entries
}

// Window writes what the next model call would receive of a session: its window, or a
// page of its messages, and its context. As JSON, the context blocks come first, then the
// system message.
func (v *View) Window(ctx context.Context, m Memory, session string, page Page) error {
	window, err := m.Window(ctx, session)
	if err != nil {
		return err
	}
	whole := len(window.Entries)
	window.Entries = page.of(window.Entries)
	shown := ""
	if n := len(window.Entries); n < whole {
		window.SystemAt, shown = 0, fmt.Sprintf("%s of %s are shown", textfmt.Thousands(n), textfmt.Count(whole, "message"))
	}
	pinned, err := pinsOf(ctx, m, session)
	if err != nil {
		return err
	}
	blocks, err := m.PreviewContext(ctx, session)
	if err != nil {
		return err
	}
	if v.JSON {
		if blocks != nil {
			if err := terminal.WriteJSON(v.Out, blocks.Parts...); err != nil {
				return err
			}
		}
		entries := slices.Clone(window.Entries)
		if window.System != nil {
			entries = slices.Insert(entries, window.SystemAt, window.System)
		}
		return terminal.WriteJSON(v.Out, v.messagesJSON(pinned, entries...)...)
	}
	flush, err := lastFlush(ctx, m, session)
	if err != nil {
		return err
	}
	p := v.printer()
	p.Context, p.Total, p.Pinned = blocks, whole, pinned
	if shown != "" {
		flush = strings.Join(slices.DeleteFunc([]string{flush, shown}, func(s string) bool { return s == "" }), "; ")
	}
	return p.Window(window, flush)
}

// lastFlush describes the newest flush of a session; empty if there was none.
func lastFlush(ctx context.Context, m Memory, session string) (string, error) {
	rewound := int64(math.MaxInt64) // what this turn and later ones flushed returned
	for ev, err := range m.EventsReversed(ctx, session) {
		switch {
		case err != nil:
			return "", err
		case ev.Kind == store.EventRewind:
			rewound = min(rewound, ev.Rewound)
		case ev.Kind == store.EventFlush && ev.Turn < rewound:
			limit := textfmt.Thousands(ev.Limit)
			if ev.Unit != store.InTokens && ev.Unit != "" {
				limit += " " + string(ev.Unit)
			}
			return fmt.Sprintf("flushed up to message %s, last on %s (over %s: %s tokens left)", textfmt.Thousands(ev.To),
				ev.Time.Local().Format("2006-01-02 15:04"), limit, textfmt.Thousands(ev.Tokens)), nil
		}
	}
	return "", nil
}

// History writes the messages of a session, or a page of them, with a rule before each
// turn. It holds one message in memory at a time.
func (v *View) History(ctx context.Context, m Memory, session string, page Page) error {
	p := v.printer()
	notes, err := contextNotes(ctx, m, session)
	if err != nil {
		return err
	}
	pinned, err := pinsOf(ctx, m, session)
	if err != nil {
		return err
	}
	p.Pinned = pinned
	turn, status := int64(-1), ""
	last := int64(0)
	if page.Limit > 0 {
		last = max(page.From, 1) + int64(page.Limit) - 1
	}
	for e, err := range m.HistoryRange(ctx, session, max(page.From, 1), last) {
		if err == nil && v.JSON {
			err = terminal.WriteJSON(v.Out, v.messagesJSON(pinned, &e)...)
		} else if err == nil {
			if e.Turn != turn {
				turn = e.Turn
				parts := []string{fmt.Sprint("turn ", e.Turn), e.Time.Local().Format("2006-01-02 15:04"), e.Status.String()}
				err = p.Rule(strings.Join(append(parts, notes[e.Turn]...), " · "))
			} else if e.Status.String() != status { // a part of the turn left the window
				err = p.Rule(e.Status.String() + " from here")
			}
			status = e.Status.String()
			switch {
			case err != nil:
			case v.Full:
				err = p.FullMessage(e.Message, e.Tokens)
			default:
				err = p.Message(&e)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pinsOf returns a function that reports whether a message of a session is pinned.
func pinsOf(ctx context.Context, m Memory, session string) (func(seq int64) bool, error) {
	head, err := m.Head(ctx, session)
	return head.State.IsPinned, err
}

// contextNotes returns the changes to the session's context, by turn.
func contextNotes(ctx context.Context, m Memory, session string) (map[int64][]string, error) {
	notes := map[int64][]string{}
	for ev, err := range m.Events(ctx, session) {
		switch {
		case err != nil:
			return nil, err
		case ev.Kind == store.EventVariables:
			turn := max(ev.Turn, 1) // values may be set before the first message
			notes[turn] = append(notes[turn], ev.Reason)
		case ev.Kind == store.EventSummary:
			notes[ev.Turn] = append(notes[ev.Turn], textfmt.Count(ev.Messages, "message")+" summarized")
		case ev.Kind == store.EventObservations:
			notes[ev.Turn] = append(notes[ev.Turn], ev.Reason)
		}
	}
	return notes, nil
}

// messageJSON is a message of a history or a window as JSON.
type messageJSON struct {
	Seq     int64           `json:"seq"`              // position in the history
	Turn    int64           `json:"turn"`             // number of its turn
	Status  string          `json:"status"`           // its status, such as in window
	Pinned  bool            `json:"pinned,omitempty"` // the policy keeps it
	Tokens  int             `json:"tokens"`           // its size
	Time    time.Time       `json:"time,omitzero"`    // zero for the system message of a step
	Message json.RawMessage `json:"message"`          // the message in the language's form
}

// messagesJSON returns messages as JSON. Items are in them only if they are asked for.
func (v *View) messagesJSON(pinned func(seq int64) bool, entries ...*memory.Entry) []messageJSON {
	all := make([]messageJSON, 0, len(entries))
	for _, e := range entries {
		shown := e.Message
		if !v.Raw {
			shown = shown.Redacted()
		}
		text, err := json.Marshal(shown)
		if err != nil {
			text = []byte("null") // cannot happen: a message always has a JSON form
		}
		all = append(all, messageJSON{e.Seq, e.Turn, e.Status.String(), pinned(e.Seq), e.Tokens, e.Time, text})
	}
	return all
}

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
