package memory

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/spec/chat"
)

// ringWindow is a window without history, as small as can be: 40 bytes a message
// beside its text, in one array. An Entry is made of a line when one is asked for.
type ringWindow struct {
	array  []packedMessage  // a ring: what left the window is used again, and nothing ever moves
	first  int              // where in array the oldest line stands
	n      int              // how many lines the window has
	whole  map[int64]*Entry // by Seq: the messages that a line does not hold
	system *Entry           // the system message that holds, nil for none
	fitted evictionPolicy   // by which the lines were fitted last; nil where that is not known
	salt   uint64           // random: what the ids of messages that have none of their own begin with
}

// packedMessage is one message of a window.
type packedMessage struct {
	text   string // of a message that is one text and nothing else
	seq    int64
	micros int64  // when it was said
	lag    int32  // its turn, less seq
	size   uint32 // its tokens, and in the upper eight bits its role's place in chat.Roles, or entryFlag
}

const (
	roleShift = 24
	maxTokens = 1<<roleShift - 1 // that a line can hold
	entryFlag = math.MaxUint8    // the role of a line whose entry stands in compact.whole
)

func (l *packedMessage) role() uint8   { return uint8(l.size >> roleShift) }
func (l *packedMessage) isEntry() bool { return l.size>>roleShift == entryFlag }
func (l *packedMessage) tokens() int   { return int(l.size & maxTokens) }
func (l *packedMessage) turn() int64   { return l.seq + int64(l.lag) }

// at is the window's line number i, the oldest one being 0.
func (w *ringWindow) at(i int) *packedMessage {
	if i += w.first; i >= len(w.array) {
		i -= len(w.array)
	}
	return &w.array[i]
}

// all is the window from line number i on, in two parts.
func (w *ringWindow) all(i int) [2][]packedMessage {
	from, to, wrap := w.first+i, w.first+w.n, len(w.array)
	switch {
	case from >= wrap:
		return [2][]packedMessage{w.array[from-wrap : to-wrap]}
	case to > wrap:
		return [2][]packedMessage{w.array[from:], w.array[:to-wrap]}
	}
	return [2][]packedMessage{w.array[from:to]}
}

// apply adds what was said and forgets what left.
func (w *ringWindow) apply(c Change) {
	from := c.State.First
	if c.State.Keep != 0 {
		from = c.State.Keep
	}
	w.dropBefore(from)
	w.fitted = nil
	for _, e := range c.Entries {
		switch {
		case e.Seq == c.State.System:
			w.system = e
		case e.Status != Failed && e.Seq >= from && e.Message.Role != chat.System:
			w.pushEntry(e)
		}
	}
	if c.State.System == 0 {
		w.system = nil
	}
}

// dropBefore drops the lines before a Seq.
func (w *ringWindow) dropBefore(from int64) {
	for w.n > 0 && w.at(0).seq < from {
		if l := w.at(0); l.isEntry() {
			delete(w.whole, l.seq)
		}
		w.drop()
	}
}

// drop drops the oldest line, which holds its message itself.
func (w *ringWindow) drop() {
	w.array[w.first].text = "" // it is free
	w.n--
	if w.first++; w.first == len(w.array) {
		w.first = 0
	}
}

// pushEntry puts an entry at the end as it is.
func (w *ringWindow) pushEntry(e *Entry) {
	if w.whole == nil {
		w.whole = map[int64]*Entry{}
	}
	w.whole[e.Seq] = e
	w.add(packedMessage{seq: e.Seq, size: entryFlag << roleShift})
}

// add puts a line at the end. Where there is no room, the lines move to an array
// that is a little larger: there are many.
func (w *ringWindow) add(l packedMessage) {
	if w.n == len(w.array) {
		larger := make([]packedMessage, growBy(w.n))
		parts := w.all(0)
		copy(larger[copy(larger, parts[0]):], parts[1])
		w.array, w.first = larger, 0
	}
	w.n++
	*w.at(w.n - 1) = l
}

// growBy is how many lines a larger array has than n: 5, 11, 14, 17, 21. Most
// windows are one of the first two, which makes little to throw away.
func growBy(n int) int {
	switch {
	case n == 0:
		return 5
	case n < 8:
		return 2*n + 1
	}
	return n + n/8 + 2
}

// after is the first entry with this Seq or a later one, nil where there is none.
func (w *ringWindow) after(seq int64) *Entry {
	i := sort.Search(w.n, func(i int) bool { return w.at(i).seq >= seq })
	switch {
	case w.system != nil && w.system.Seq >= seq && (i == w.n || w.system.Seq < w.at(i).seq):
		return w.system
	case i == w.n:
		return nil
	case w.at(i).isEntry():
		return w.whole[w.at(i).seq]
	}
	return w.entryOf(w.at(i))
}

// entryOf makes the entry of a line.
func (w *ringWindow) entryOf(l *packedMessage) *Entry {
	e := &struct {
		Entry
		block [1]chat.Block
	}{}
	e.block[0] = chat.Block{Type: "text", Text: l.text}
	e.Seq, e.Turn, e.Tokens, e.Time = l.seq, l.turn(), l.tokens(), time.UnixMicro(l.micros).UTC()
	e.Message = chat.Message{ID: w.id(l.seq), Role: roleAt(l.role()), Blocks: e.block[:]}
	return &e.Entry
}

// id is that of a message that nobody gave one.
func (w *ringWindow) id(seq int64) string {
	b := make([]byte, 0, 32)
	b = strconv.AppendUint(b, w.salt, 16)
	b = append(b, '-')
	return string(strconv.AppendInt(b, seq, 16))
}

// packEntry is an entry as a line; ok is false for one that is more than a text.
func packEntry(e *Entry) (l packedMessage, ok bool) {
	lag := e.Turn - e.Seq
	if e.Message.ID != "" || int64(int32(lag)) != lag {
		return packedMessage{}, false
	}
	l, ok = packText(&e.Message, e.Tokens)
	l.seq, l.lag, l.micros = e.Seq, int32(lag), e.Time.UnixMicro()
	return l, ok
}

// packText is a message of that many tokens as a line that has no place yet; ok is
// false for one that is more than a text.
func packText(msg *chat.Message, tokens int) (l packedMessage, ok bool) {
	if len(msg.Blocks) != 1 || msg.Name != "" || msg.ToolCallID != "" || len(msg.ToolCalls) > 0 ||
		tokens < 0 || tokens > maxTokens {
		return packedMessage{}, false
	}
	b := &msg.Blocks[0]
	if b.Type != "text" || b.Data != nil || b.MimeType != "" {
		return packedMessage{}, false
	}
	role := roleIndex(msg.Role)
	return packedMessage{text: b.Text, size: uint32(max(role, 0))<<roleShift | uint32(tokens)}, role >= 0
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
