// Package explain reports what a past turn of a conversation sent to its model, and
// why earlier messages were left out: `qtype memory explain`.
package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Report describes one turn.
type Report struct {
	Turn     int64       `json:"turn"`             // number of the turn
	Messages int         `json:"messages"`         // messages sent in its last call, without the system message
	Tokens   int         `json:"tokens"`           // size of these messages
	Call     *store.Call `json:"call"`             // the last call of a model; null if there was none
	Failed   string      `json:"failed,omitempty"` // why the turn failed, if it did
	Time     time.Time   `json:"time"`             // time of its end
	Change   string      `json:"change,omitempty"` // what the turn did to earlier messages: edited, deleted or rewound them
	Prefix   []Prefix    `json:"prefix,omitempty"` // how the first call, and each later one that does not, continues the request before
	Sent     []Message   `json:"sent"`             // messages that were sent, oldest first
	Missing  []Gap       `json:"missing"`          // earlier messages that were not sent

	page bool // Select was called
}

// Message is a message that was sent.
type Message struct {
	Seq    int64     `json:"seq"`            // position in the history
	Turn   int64     `json:"turn"`           // the turn that added it
	Role   chat.Role `json:"role"`           // the role
	Tokens int       `json:"tokens"`         // its size
	Text   int64     `json:"text,omitempty"` // position of its text, if it had been edited before

	Pinned    bool `json:"pinned,omitempty"`    // the policy kept it because it was pinned
	Shortened bool `json:"shortened,omitempty"` // it was sent in a short form; Tokens is its whole size
}

// Gap is a range of messages that were not sent, for one reason.
type Gap struct {
	From     int64           `json:"from"`     // Seq of the first message
	To       int64           `json:"to"`       // Seq of the last message
	Messages int             `json:"messages"` // number of messages
	Tokens   int             `json:"tokens"`   // their size
	Kind     store.EventKind `json:"kind"`     // flush, failed, set, rewind or delete; budget or limit if only this call left them out
	Turn     int64           `json:"turn"`     // the turn in which they were removed
	Reason   string          `json:"reason"`   // the rule and its numbers
}

// Reasons of one call to leave out messages without evicting them.
const (
	budget store.EventKind = "budget" // over the model's context window
	limit  store.EventKind = "limit"  // over the policy's limit, and the turn then failed or its question stayed
)

// NoTurnError reports an unknown turn.
type NoTurnError struct {
	Session string // id of the session
	Turn    int64  // the requested turn
	Last    int64  // the newest turn
}

// Error returns a message with the turns that exist.
func (e *NoTurnError) Error() string {
	if e.Last == 0 {
		return fmt.Sprintf("session %q has no turns yet", e.Session)
	}
	return fmt.Sprintf("session %q has no turn %d; its turns are 1 to %d", e.Session, e.Turn, e.Last)
}

// isRevision reports whether an event of this kind is a turn that changes earlier messages.
func isRevision(kind store.EventKind) bool {
	return slices.Contains([]store.EventKind{store.EventEdit, store.EventDelete, store.EventRewind, store.EventPin, store.EventUnpin}, kind)
}

// undoes reports whether a rewind undoes an earlier event.
func undoes(rewind, e memory.Event) bool {
	if rewind.Kind != store.EventRewind || min(e.Turn, cmp.Or(e.Rewound, e.Turn)) < rewind.Rewound {
		return false
	}
	revision := isRevision(e.Kind) && e.Kind != store.EventRewind
	return !revision || !rewind.Revised || rewind.From > 0 && e.From >= rewind.From
}

// editsBefore returns the positions of all texts of edited messages, and the edits that
// held before a turn, by the positions of the messages.
func editsBefore(turn int64, events []memory.Event) (texts map[int64]bool, edited map[int64]memory.Event) {
	texts = map[int64]bool{}
	var all []memory.Event
	for _, e := range events {
		switch {
		case e.Kind == store.EventEdit:
			texts[e.By] = true
			if e.Turn < turn {
				all = append(all, e)
			}
		case e.Kind == store.EventRewind && e.Turn < turn:
			all = slices.DeleteFunc(all, func(one memory.Event) bool { return undoes(e, one) })
		}
	}
	edited = map[int64]memory.Event{}
	for _, e := range all {
		edited[e.From] = e
	}
	return texts, edited
}

// pinnedBefore returns a function that reports whether a message was pinned before a turn.
func pinnedBefore(turn int64, events []memory.Event) func(seq int64) bool {
	pinned := map[int64]bool{}
	undone := undoneBy(events, turn-1)
	for i, e := range events {
		if e.Turn >= turn || undone[i] {
			continue
		}
		for seq := e.From; seq <= e.To && (e.Kind == store.EventPin || e.Kind == store.EventUnpin); seq++ {
			pinned[seq] = e.Kind == store.EventPin
		}
	}
	return func(seq int64) bool { return pinned[seq] }
}

// addGap adds a range to Missing, to the last one if it has the same reason.
func (r *Report) addGap(gap Gap) {
	if n := len(r.Missing); n > 0 {
		before := &r.Missing[n-1]
		s := len(r.Sent)
		between := s > 0 && r.Sent[s-1].Seq > before.To // a pinned message
		if !between && before.Kind == gap.Kind && before.Turn == gap.Turn && before.Reason == gap.Reason {
			before.To, before.Messages, before.Tokens = gap.To, before.Messages+gap.Messages, before.Tokens+gap.Tokens
			return
		}
	}
	r.Missing = append(r.Missing, gap)
}

// isRemoval reports whether events of this kind remove messages from the window.
func isRemoval(kind store.EventKind) bool {
	return slices.Contains([]store.EventKind{store.EventFlush, store.EventFailed, store.EventSet, store.EventRewind, store.EventDelete}, kind)
}

// Write writes the report as text.
func (r *Report) Write(out io.Writer) error {
	var b strings.Builder
	r.writeCall(&b)
	if r.Failed != "" {
		fmt.Fprintf(&b, "the turn failed: %s\n", r.Failed)
	}
	for _, m := range r.Sent {
		if m.Text > 0 {
			fmt.Fprintf(&b, "message %d was sent with its new text, message %d\n", m.Seq, m.Text)
		}
	}
	r.writePinned(&b)
	r.writeShortened(&b)
	for _, line := range r.missing() {
		b.WriteString(textfmt.Wrap("left out: "+line, 100, "", "          "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writePinned writes which messages were pinned.
func (r *Report) writePinned(b *strings.Builder) {
	var pinned []string
	for _, m := range r.Sent {
		if m.Pinned {
			pinned = append(pinned, textfmt.Thousands(m.Seq))
		}
	}
	if len(pinned) > 0 {
		b.WriteString(textfmt.Wrap("pinned: message "+strings.Join(pinned, ", "), 100, "", "        "))
	}
}

// writeShortened writes which messages were sent in a short form, or without their images.
func (r *Report) writeShortened(b *strings.Builder) {
	if r.Call != nil && r.Call.Imageless != "" {
		b.WriteString(textfmt.Wrap(fmt.Sprintf("without images: message %s (drop_images)", r.Call.Imageless), 100, "", "                "))
	}
	if r.Call == nil || r.Call.Shortened == "" {
		return
	}
	whole := 0
	for _, m := range r.Sent {
		if m.Shortened {
			whole += m.Tokens
		}
	}
	b.WriteString(textfmt.Wrap(fmt.Sprintf("shortened: the tool results %s, %s tokens as a whole (shorten_tool_results)", r.Call.Shortened, textfmt.Thousands(whole)), 100, "", "           "))
}

// writeCall writes what the last call of the turn sent.
func (r *Report) writeCall(b *strings.Builder) {
	if r.Call == nil {
		fmt.Fprintf(b, "turn %d called no model: %s\n", r.Turn, cmp.Or(r.Change, "its messages were appended"))
		return
	}
	fmt.Fprintf(b, "turn %d sent %s, %s tokens%s\n", r.Turn, textfmt.Count(r.Messages, "message"), textfmt.Thousands(r.Tokens), r.model())
	if r.Call.System > 0 {
		fmt.Fprintf(b, "preceded by a system message of %s tokens\n", textfmt.Thousands(r.Call.System))
	}
	r.writeContext(b)
	r.writeCount(b)
	if r.Call.Repairs > 0 {
		fmt.Fprintf(b, "%s: results of tool calls that are missing were replaced by an error, results without a call were left out\n", textfmt.Count(r.Call.Repairs, "repair"))
	}
	if r.Call.Cut {
		b.WriteString("the first message was truncated at its start (max_context)\n")
	}
	r.writePrefix(b)
	if r.Call.Calls > 1 {
		fmt.Fprintf(b, "this was the last of %d calls\n", r.Call.Calls)
	}
}

// writeCount writes how the provider's count of the request compares with the estimate.
func (r *Report) writeCount(b *strings.Builder) {
	if r.Call.Rejected > 0 {
		why := "as too long"
		if r.Call.Suspected {
			why = "without a reason, perhaps as too long"
		}
		fmt.Fprintf(b, "the provider rejected the request %s; it was sent again without %s\n", why, textfmt.Count(r.Call.Rejected, "further message"))
	}
	if r.Call.Factor > 1 {
		fmt.Fprintf(b, "the window was fitted with factor %.3f: the provider had counted that many times the estimate\n", r.Call.Factor)
	}
	if r.Call.Reported > 0 {
		fmt.Fprintf(b, "the provider counted %s tokens in the request, the estimate was %s\n", textfmt.Thousands(r.Call.Reported), textfmt.Thousands(r.Call.Estimate))
	}
}

// model returns `, to gpt-6-sol (context window 922,000, 128,000 for the answer)`.
func (r *Report) model() string {
	if r.Call.Model == "" {
		return ""
	}
	var room []string
	if r.Call.ContextWindow > 0 {
		room = append(room, "context window "+textfmt.Thousands(r.Call.ContextWindow))
	}
	if r.Call.Answer > 0 {
		room = append(room, textfmt.Thousands(r.Call.Answer)+" for the answer")
	}
	if r.Call.Tools > 0 {
		room = append(room, textfmt.Thousands(r.Call.Tools)+" for tools")
	}
	if r.Call.Passages > 0 {
		room = append(room, textfmt.Thousands(r.Call.Passages)+" for passages")
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
	case store.EventFlush:
		return fmt.Sprintf("%s, flushed in turn %d: %s", which, g.Turn, g.Reason)
	case store.EventFailed:
		return fmt.Sprintf("%s, added in turn %d, which failed: %s", which, g.Turn, g.Reason)
	case store.EventDelete:
		return fmt.Sprintf("%s: deleted in turn %d", which, g.Turn)
	case store.EventSet, store.EventRewind:
		return fmt.Sprintf("%s: %s in turn %d", which, g.Reason, g.Turn)
	}
	return which + ": " + g.Reason
}

// writeContext writes what each context block took, and how much was cut.
func (r *Report) writeContext(b *strings.Builder) {
	if len(r.Call.Context) == 0 {
		return
	}
	total := 0
	for _, part := range r.Call.Context {
		total += part.Tokens
	}
	fmt.Fprintf(b, "plus a context of %s tokens; the messages left room for %s\n", textfmt.Thousands(total), textfmt.Thousands(r.Call.Room))
	for _, part := range r.Call.Context {
		b.WriteString("  " + textfmt.Wrap(contextLine(part), 98, "", "            "))
	}
}

// contextLine describes one block on one line.
func contextLine(part store.ContextBlockReport) string {
	name := string(part.Block) + ":"
	var parts []string
	if part.Units == 0 && part.Cut == 0 {
		parts = append(parts, "nothing")
	} else {
		parts = append(parts, fmt.Sprintf("%s, %s tokens", count(part.Block, part.Units), textfmt.Thousands(part.Tokens)))
	}
	if part.Through > 0 {
		parts = append(parts, fmt.Sprintf("of messages 1 to %d", part.Through))
	}
	if len(part.Found) > 0 {
		parts = append(parts, "found: "+messageList(part.Found))
	}
	if part.Cut > 0 {
		parts = append(parts, fmt.Sprintf("%s did not fit (priority %d: the highest number is cut first)", count(part.Block, part.Cut), part.Priority))
	}
	if part.Problem != "" {
		parts = append(parts, part.Problem)
	}
	return name + " " + strings.Join(parts, "; ")
}

// count returns the number of units of a block.
func count(kind store.BlockKind, n int) string {
	switch kind {
	case promptcontext.Variables:
		return textfmt.Count(n, "value")
	case promptcontext.Retrieval:
		return textfmt.Count(n, "message")
	case promptcontext.Facts:
		return textfmt.Count(n, "fact")
	case promptcontext.Observations:
		return textfmt.Count(n, "statement")
	}
	return textfmt.Count(n, "line")
}

// messageList returns "messages 1, 2".
func messageList(seqs []int64) string {
	texts := make([]string, len(seqs))
	for i, n := range seqs {
		texts[i] = fmt.Sprint(n)
	}
	return "messages " + strings.Join(texts, ", ")
}
