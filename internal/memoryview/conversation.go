package memoryview

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
