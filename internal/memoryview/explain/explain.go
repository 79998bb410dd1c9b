// Package explain tells what a past turn of a conversation sent to its model,
// and by which rule each message that was said before is missing: `qtype memory
// explain`. It also writes a history as a transcript: `qtype memory export`.
package explain

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Report is what is known of one turn.
type Report struct {
	Turn     int64        `json:"turn"`             // its number
	Messages int          `json:"messages"`         // how many messages its last call was sent, the system message aside
	Tokens   int          `json:"tokens"`           // their tokens
	Call     *memory.Call `json:"call"`             // the model and its room; null where the turn asked none
	Failed   string       `json:"failed,omitempty"` // why the turn failed
	Time     time.Time    `json:"time"`             // when it ended
	Sent     []Message    `json:"sent"`             // what was sent, oldest first
	Missing  []Gap        `json:"missing"`          // what had been said before and was not sent
}

// Message is one message that was sent.
type Message struct {
	Seq    int64     `json:"seq"`    // its place in the history
	Turn   int64     `json:"turn"`   // the turn that said it
	Role   chat.Role `json:"role"`   // who spoke
	Tokens int       `json:"tokens"` // its size
}

// Gap is a run of messages that were not sent, for one reason.
type Gap struct {
	From     int64            `json:"from"`     // the first one's place in the history
	To       int64            `json:"to"`       // the last one's
	Messages int              `json:"messages"` // how many they are
	Tokens   int              `json:"tokens"`   // their tokens
	Kind     memory.EventKind `json:"kind"`     // flush, failed or set; "budget" or "limit" where only this call had no room
	Turn     int64            `json:"turn"`     // the turn in which they left
	Reason   string           `json:"reason"`   // by which rule and numbers
}

// What one call left out without evicting it.
const (
	budget memory.EventKind = "budget" // the model's context window had no room
	limit  memory.EventKind = "limit"  // the policy's limit had none, and the turn then failed
)

// NoTurnError says that a session has no turn of that number.
type NoTurnError struct {
	Session string // the session's id
	Turn    int64  // what was asked for
	Last    int64  // its newest turn
}

// Error names the turns that there are.
func (e *NoTurnError) Error() string {
	if e.Last == 0 {
		return fmt.Sprintf("session %q has no turns yet", e.Session)
	}
	return fmt.Sprintf("session %q has no turn %d; its turns are 1 to %d", e.Session, e.Turn, e.Last)
}

// Turn tells about one turn; 0 is the newest one.
func Turn(ctx context.Context, m *memory.Memory, session string, turn int64) (*Report, error) {
	events, err := collect(m.Events(ctx, session))
	if err != nil {
		return nil, err
	}
	entries, err := collect(m.History(ctx, session))
	if err != nil {
		return nil, err
	}
	var last int64
	for _, e := range entries {
		last = max(last, e.Turn)
	}
	if turn == 0 {
		turn = last
	}
	if turn < 1 || turn > last {
		return nil, &NoTurnError{Session: session, Turn: turn, Last: last}
	}
	r := &Report{Turn: turn, Sent: []Message{}, Missing: []Gap{}}
	var sent memory.Event
	for _, e := range events {
		switch {
		case e.Turn == turn && e.Kind == memory.EventSent:
			sent, r.Call, r.Messages, r.Tokens = e, e.Call, e.Messages, e.Tokens
		case e.Turn == turn && e.Kind == memory.EventFailed:
			r.Failed = e.Reason
		}
	}
	evicted := evictedBefore(sent, entries, events)
	for _, e := range entries {
		r.place(e, sent, events, evicted[e.Seq])
	}
	return r, nil
}

// evictedBefore returns the positions within a call's range of messages that had
// left the window before it: those between others that stayed.
func evictedBefore(sent memory.Event, entries []memory.Entry, events []memory.Event) map[int64]bool {
	inRange := 0
	for _, e := range entries {
		if e.Seq >= sent.From && e.Seq <= sent.To && e.Status != memory.Failed && e.Message.Role != chat.System {
			inRange++
		}
	}
	if sent.From == 0 || inRange <= sent.Messages {
		return nil
	}
	evicted := map[int64]bool{}
	for _, e := range events {
		for seq := max(e.From, sent.From); e.Kind == memory.EventFlush && e.Turn < sent.Turn && seq <= min(e.To, sent.To); seq++ {
			evicted[seq] = true
		}
	}
	return evicted
}

func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// place puts an entry among what was sent or what was not.
func (r *Report) place(e memory.Entry, sent memory.Event, events []memory.Event, evicted bool) {
	if e.Turn == r.Turn {
		r.Time = e.Time
	}
	if r.Call == nil || e.Turn > r.Turn || e.Message.Role == chat.System {
		return
	}
	own := e.Turn == r.Turn
	known := own || e.Seq <= r.Call.Seen && e.Status != memory.Failed
	switch {
	case known && !evicted && e.Seq >= sent.From && e.Seq <= sent.To && sent.From > 0:
		r.Sent = append(r.Sent, Message{e.Seq, e.Turn, e.Message.Role, e.Tokens})
	case own && e.Seq > sent.To:
		// the answer, or what followed the last call
	default:
		r.addGap(e, events)
	}
}

func (r *Report) addGap(e memory.Entry, events []memory.Event) {
	gap := Gap{From: e.Seq, To: e.Seq, Messages: 1, Tokens: e.Tokens, Kind: budget, Turn: r.Turn,
		Reason: fmt.Sprintf("this call had no room left for them in the context window of %s", show.Thousands(r.Call.ContextWindow))}
	switch {
	case r.Call.Left > 0:
	case e.Seq <= r.Call.Seen:
		gap.Kind = limit
		gap.Reason = "the policy's limit left no room in this call; the turn failed, so nothing was evicted"
	default:
		gap.Reason = "another process said so while this turn went on"
	}
	for _, ev := range events {
		covers := ev.From <= e.Seq && e.Seq <= ev.To && ev.Turn <= r.Turn && isRemoval(ev.Kind)
		if covers && (ev.Kind == memory.EventFailed) == (e.Status == memory.Failed) {
			gap.Kind, gap.Turn, gap.Reason = ev.Kind, ev.Turn, ev.Reason
		}
	}
	if n := len(r.Missing); n > 0 {
		before := &r.Missing[n-1]
		if before.Kind == gap.Kind && before.Turn == gap.Turn && before.Reason == gap.Reason {
			before.To, before.Messages, before.Tokens = gap.To, before.Messages+1, before.Tokens+gap.Tokens
			return
		}
	}
	r.Missing = append(r.Missing, gap)
}

// isRemoval tells whether what an event of this kind concerns is not sent any more.
func isRemoval(kind memory.EventKind) bool {
	return kind == memory.EventFlush || kind == memory.EventFailed || kind == memory.EventSet
}

// Write writes the report for people.
func (r *Report) Write(out io.Writer) error {
	var b strings.Builder
	if r.Call == nil {
		fmt.Fprintf(&b, "turn %d asked no model: what it said was appended\n", r.Turn)
	} else {
		fmt.Fprintf(&b, "turn %d sent %s, %s tokens%s\n", r.Turn, show.Messages(r.Messages), show.Thousands(r.Tokens), r.to())
		if r.Call.System > 0 {
			fmt.Fprintf(&b, "before them stood a system message of %s tokens\n", show.Thousands(r.Call.System))
		}
		r.writeContext(&b)
		if r.Call.Cut {
			b.WriteString("the first of them was cut at its front: max_context\n")
		}
		if r.Call.Calls > 1 {
			fmt.Fprintf(&b, "it was the last of %d calls\n", r.Call.Calls)
		}
	}
	if r.Failed != "" {
		fmt.Fprintf(&b, "the turn failed: %s\n", r.Failed)
	}
	for _, g := range r.Missing {
		b.WriteString(wrap("left out: "+g.text(), 100, "          "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// to is `, to gpt-4o (context window 128,000, room for 16,384 of answer)`.
func (r *Report) to() string {
	if r.Call.Model == "" {
		return ""
	}
	var room []string
	if r.Call.ContextWindow > 0 {
		room = append(room, "context window "+show.Thousands(r.Call.ContextWindow))
	}
	if r.Call.Answer > 0 {
		room = append(room, fmt.Sprintf("room for %s of answer", show.Thousands(r.Call.Answer)))
	}
	if r.Call.Tools > 0 {
		room = append(room, show.Thousands(r.Call.Tools)+" of tools")
	}
	s := ", to " + r.Call.Model
	if len(room) > 0 {
		s += " (" + strings.Join(room, ", ") + ")"
	}
	return s
}

func (g Gap) text() string {
	which := fmt.Sprintf("messages %d to %d", g.From, g.To)
	if g.From == g.To {
		which = fmt.Sprintf("message %d", g.From)
	}
	switch g.Kind {
	case memory.EventFlush:
		return fmt.Sprintf("%s, flushed in turn %d: %s", which, g.Turn, g.Reason)
	case memory.EventFailed:
		return fmt.Sprintf("%s, said in turn %d, which failed: %s", which, g.Turn, g.Reason)
	case memory.EventSet:
		return fmt.Sprintf("%s: %s in turn %d", which, g.Reason, g.Turn)
	}
	return which + ": " + g.Reason
}

// wrap breaks text into lines of so many characters, the later ones indented.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}

// Export writes everything that was said in a session as JSON lines in OpenAI's
// form, which `qtype memory replay` reads. What turns said that failed is left
// out unless failed is set.
func Export(ctx context.Context, m *memory.Memory, session string, out io.Writer, failed bool) error {
	for e, err := range m.History(ctx, session) {
		if err != nil {
			return err
		}
		if e.Status == memory.Failed && !failed {
			continue
		}
		if _, err := out.Write(append(chat.OpenAI(e.Message), '\n')); err != nil {
			return err
		}
	}
	return nil
}
