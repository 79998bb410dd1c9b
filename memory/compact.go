package memory

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/chat"
)

// compact is a window without history, as small as can be: 56 bytes a message
// beside its text, in one array. An Entry is made of a line when one is asked for.
type compact struct {
	lines  []line // by rising Seq, system messages aside; the end of array
	array  []line // from its beginning: what left lines is used again
	system *Entry // the system message that holds, nil for none
	fitted policy // by which the lines were fitted last; nil where that is not known
	salt   uint64 // random: what the ids of messages that have none of their own begin with
}

// line is one message of a window.
type line struct {
	text   string // of a message that is one text and nothing else
	entry  *Entry // of any other; else nil
	seq    int64
	turn   int64
	micros int64 // when it was said
	tokens int32
	role   uint8 // an index into chat.Roles
}

// apply adds what was said and forgets what left.
func (w *compact) apply(c Change) {
	from := c.State.First
	if c.State.Keep != 0 {
		from = c.State.Keep
	}
	w.forget(from)
	w.fitted = nil
	for _, e := range c.Entries {
		switch {
		case e.Seq == c.State.System:
			w.system = e
		case e.Status != Failed && e.Seq >= from && e.Message.Role != chat.System:
			w.add(line{entry: e, seq: e.Seq})
		}
	}
	if c.State.System == 0 {
		w.system = nil
	}
}

// forget drops the lines before a Seq.
func (w *compact) forget(from int64) {
	n := 0
	for n < len(w.lines) && w.lines[n].seq < from {
		n++
	}
	clear(w.lines[:n]) // their texts are free
	w.lines = w.lines[n:]
}

// add puts a line at the end. Where there is no room, the lines move to the
// beginning of the array, or to one that is a little larger: there are many.
func (w *compact) add(l line) {
	n := len(w.lines)
	switch {
	case n < cap(w.lines):
	case n < cap(w.array):
		moved := w.array[:copy(w.array[:cap(w.array)], w.lines)]
		clear(w.lines[max(2*n-cap(w.array), 0):]) // those that were not written over
		w.lines = moved
	default:
		w.array = make([]line, 0, n+n/8+2)
		w.lines = append(w.array, w.lines...)
	}
	w.lines = append(w.lines, l)
}

// after is the first entry with this Seq or a later one, nil where there is none.
func (w *compact) after(seq int64) *Entry {
	i, _ := slices.BinarySearchFunc(w.lines, seq, func(l line, seq int64) int { return cmp.Compare(l.seq, seq) })
	switch {
	case w.system != nil && w.system.Seq >= seq && (i == len(w.lines) || w.system.Seq < w.lines[i].seq):
		return w.system
	case i == len(w.lines):
		return nil
	case w.lines[i].entry != nil:
		return w.lines[i].entry
	}
	return w.entryOf(&w.lines[i])
}

// entryOf makes the entry of a line.
func (w *compact) entryOf(l *line) *Entry {
	e := &struct {
		Entry
		block [1]chat.Block
	}{}
	e.block[0] = chat.Block{Type: "text", Text: l.text}
	e.Seq, e.Turn, e.Tokens, e.Time = l.seq, l.turn, int(l.tokens), time.UnixMicro(l.micros).UTC()
	e.Message = chat.Message{ID: w.id(l.seq), Role: roleAt(l.role), Blocks: e.block[:]}
	return &e.Entry
}

// id is that of a message that nobody gave one.
func (w *compact) id(seq int64) string {
	b := make([]byte, 0, 32)
	b = strconv.AppendUint(b, w.salt, 16)
	b = append(b, '-')
	return string(strconv.AppendInt(b, seq, 16))
}

// plain is a message as a line, numbered later; ok is false for one that is
// more than a text.
func plain(msg *chat.Message, tokens int) (l line, ok bool) {
	if len(msg.Blocks) != 1 || msg.ID != "" || msg.Name != "" || msg.ToolCallID != "" || len(msg.ToolCalls) > 0 || tokens > math.MaxInt32 {
		return line{}, false
	}
	b := &msg.Blocks[0]
	if b.Type != "text" || b.Data != nil || b.MimeType != "" {
		return line{}, false
	}
	role := roleIndex(msg.Role)
	return line{text: b.Text, tokens: int32(tokens), role: uint8(max(role, 0))}, role >= 0
}

// roleIndex is a role's place in chat.Roles, below 0 for what is none.
func roleIndex(r chat.Role) int {
	switch r {
	case chat.User: // the most frequent ones first
		return 7
	case chat.Assistant:
		return 0
	}
	return slices.Index(chat.Roles(), r)
}

func roleAt(i uint8) chat.Role {
	switch i {
	case 7:
		return chat.User
	case 0:
		return chat.Assistant
	}
	return chat.Roles()[i]
}
