package memory

import (
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
)

// view is a session at one version. It is immutable once it is published. Its
// successor shares the array of entries and only appends to it.
type view struct {
	version int64
	state   store.State
	values  map[string][]byte
	system  *store.Entry   // the session's system message, nil for none
	step    *store.Entry   // the system message that a step supplied, nil for none
	entries []*store.Entry // the window, oldest first; with a rereader also what later reads may need
	begin   int64          // no entry has a lower position
	gaps    store.Ranges   // positions from begin on that left the window before older ones
	tokens  int            // of all entries
	user    int            // index of the last user message in entries, -1 for none
	users   int            // number of user messages in entries
	tools   int            // number of entries with tool calls or results
	images  int            // number of entries with images
	bytes   int            // approximate memory used by entries; 0 unless weighed
	weighed bool           // bytes is maintained: the number of cached views is bounded

	stored store.LocalSession // the session in a store of this process, nil if it is not known

	texts map[int64]*store.Entry // the newest texts of edited messages that were read, by the positions of the messages

	compactor *compactor             // makes short forms; nil for none
	places    map[*store.Entry]int64 // with a compactor: the positions that messages of a turn that has not ended will get
	short     []*store.Entry         // the entries that are short forms
	plain     []*store.Entry         // the entries without their images, before results were shortened

	reserved int // messages that stay and are not among entries; their tokens are in tokens

	others int // tokens that a call needs besides messages; with Compaction.At they count

	pending bool // system is part of a turn that has not ended, before the last tail entries
	tail    int

	measured bool    // sizes and chars are maintained
	sizes    []int32 // characters of each entry
	chars    int     // their sum
}

func newView(measured, weighed bool, c *compactor) *view {
	return &view{state: store.State{First: 1}, begin: 1, user: -1, measured: measured, weighed: weighed, compactor: c}
}

// shortened returns the view with short forms of old messages, itself if there are none.
func (v *view) shortened() *view {
	if v.compactor == nil || v.compactor.ToolResults == 0 || len(v.short) > 0 || v.tools == 0 {
		return v
	}
	entries, short := v.compactor.shorten(v.entries, v.places)
	if len(short) == 0 {
		return v
	}
	c := *v
	c.entries, c.short, c.tokens = entries, short, v.tokens-sumTokens(v.entries)+sumTokens(entries)
	return &c
}

// withoutImages returns the view with captions in place of old images, itself if there are
// none.
func (v *view) withoutImages() *view {
	if v.compactor.ImageRounds == 0 || v.images == 0 || len(v.plain) > 0 {
		return v
	}
	entries, plain := v.compactor.withoutImages(v.entries)
	if len(plain) == 0 {
		return v
	}
	c := *v
	c.entries, c.plain, c.tokens = entries, plain, v.tokens-sumTokens(v.entries)+sumTokens(entries)
	return &c
}

func (v *view) append(e *store.Entry) {
	if isUser(e) {
		v.user = len(v.entries)
		v.users++
	}
	if n := len(v.entries); n == cap(v.entries) {
		// Entries that left the window are freed when the array is replaced, so the room is
		// small, unless a store in this process has them too.
		room := n/8 + 2
		if v.stored != nil {
			room = n/2 + 4
		}
		v.entries = append(make([]*store.Entry, 0, n+room), v.entries...)
	}
	v.entries = append(v.entries, e)
	v.tokens += e.Tokens
	if isToolUse(e) {
		v.tools++
	}
	if hasImage(e) {
		v.images++
	}
	if v.weighed {
		v.bytes += approximateBytes(e)
	}
	if v.measured {
		n := characters(&e.Message)
		v.sizes = append(v.sizes, int32(min(n, 1<<30)))
		v.chars += n
	}
}

// has reports whether the window has a message with this id.
func (v *view) has(id string) bool {
	if v.system != nil && v.system.Message.ID == id {
		return true
	}
	for _, e := range slices.Backward(v.entries) {
		if e.Message.ID == id {
			return true
		}
	}
	return false
}

// isComplete reports whether the window is the whole history.
func (v *view) isComplete() bool {
	n := len(v.entries)
	if v.system != nil {
		n++
	}
	return v.state.Last == int64(n)
}

// unit returns how many entries leave together with the one at an index.
func (v *view) unit(i int) int {
	if v.tools == 0 {
		return 1
	}
	return unit(v.entries[i:])
}

// remove removes a set of entries.
func (v *view) remove(s eviction) {
	for from, to := range s.runs {
		for i, e := range v.entries[from:to] {
			v.tokens -= e.Tokens
			if isUser(e) {
				v.users--
			}
			if v.tools > 0 && isToolUse(e) {
				v.tools--
			}
			if v.images > 0 && hasImage(e) {
				v.images--
			}
			if v.weighed {
				v.bytes -= approximateBytes(e)
			}
			if v.measured {
				v.chars -= int(v.sizes[from+i])
			}
		}
	}
	if s.prefix > 0 {
		v.begin = v.entries[s.prefix-1].Seq + 1 // the next message may have its position already
	}
	sparse := len(v.gaps) > 0 || len(s.others) > 0
	newest := v.newestEvicted(s)
	if v.measured {
		v.sizes = restOf(s, v.sizes)
	}
	v.entries = s.rest(v.entries)
	if len(s.others) == 0 {
		v.user = max(v.user-s.prefix, -1)
	} else {
		v.user = lastUser(v.entries)
	}
	if len(v.entries) > 0 {
		v.begin = v.entries[0].Seq
	}
	if sparse {
		v.setGaps(newest)
	}
}

func restOf(s eviction, sizes []int32) []int32 {
	if len(s.others) == 0 {
		return sizes[s.prefix:]
	}
	var out []int32
	for i, n := range sizes {
		if !s.has(i) {
			out = append(out, n)
		}
	}
	return out
}

// newestEvicted returns the highest position that left the window, s included, 0 for none.
func (v *view) newestEvicted(s eviction) int64 {
	var newest int64
	if n := len(v.gaps); n > 0 {
		newest = v.gaps[n-1].To
	}
	for _, to := range s.runs {
		newest = max(newest, v.entries[to-1].Seq)
	}
	return newest
}

// setGaps derives gaps from the entries: every position between two of them is
// failed, a system message, or evicted, and none of those returns. newest is
// the highest position that was evicted.
func (v *view) setGaps(newest int64) {
	v.gaps = nil
	if len(v.entries) == 0 {
		v.begin = max(v.begin, newest+1)
		return
	}
	for i, e := range v.entries {
		next := newest + 1
		if i+1 < len(v.entries) {
			next = v.entries[i+1].Seq
		}
		if e.Seq > 0 && next > e.Seq+1 { // messages of a turn that has not ended have no position
			v.gaps = append(v.gaps, store.Range{From: e.Seq + 1, To: next - 1})
		}
	}
}

// rounds returns the number of rounds. Messages before the first user message
// are a round too.
func (v *view) rounds() int {
	if len(v.entries) > 0 && !isUser(v.entries[0]) {
		return v.users + 1
	}
	return v.users
}

// minSeq returns the lowest position that the window can ever contain.
func (v *view) minSeq() int64 { return max(v.state.Floor, 1) }

// systemEntry returns the session's system message, otherwise the step's, nil for none.
func (v *view) systemEntry() *store.Entry {
	if v.system != nil {
		return v.system
	}
	return v.step
}

// systemCount returns the number of system messages: 0 or 1.
func (v *view) systemCount() int {
	if v.systemEntry() == nil {
		return 0
	}
	return 1
}

func (v *view) systemTokens() int {
	if e := v.systemEntry(); e != nil {
		return e.Tokens
	}
	return 0
}
