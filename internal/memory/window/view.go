package window

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/memory/store"
)

// View is a session at one version. It is immutable once it is published. Its
// successor shares the array of entries and only appends to it.
type View struct {
	Version int64
	State   store.State
	Values  map[string][]byte
	System  *store.Entry   // the session's system message, nil for none
	Step    *store.Entry   // the system message that a step supplied, nil for none
	Entries []*store.Entry // the window, oldest first; with a rereader also what later reads may need
	Begin   int64          // no entry has a lower position
	Gaps    store.Ranges   // positions from begin on that left the window before older ones
	Tokens  int            // of all entries
	User    int            // index of the last user message in entries, -1 for none
	newest  int64          // position of the last one of entries; 0 if that left the window
	users   int32          // number of user messages in entries
	tools   int32          // number of entries with tool calls or results
	images  int32          // number of entries with images
	Bytes   int            // approximate memory used by entries; 0 unless weighed
	Weighed bool           // bytes is maintained: the number of cached views is bounded

	Stored store.LocalSession // the session in a store of this process, nil if it is not known

	Texts map[int64]*store.Entry // the newest texts of edited messages that were read, by the positions of the messages

	Compactor *Compactor             // makes short forms; nil for none
	Places    map[*store.Entry]int64 // with a compactor: the positions that messages of a turn that has not ended will get
	Short     []*store.Entry         // the entries that are short forms
	Plain     []*store.Entry         // the entries without their images, before results were shortened

	reserved int // messages that stay and are not among entries; their tokens are in tokens

	Others int // tokens that a call needs besides messages; with Compaction.At they count

	Pending bool // system is part of a turn that has not ended, before the last tail entries
	Tail    int

	Measured bool    // sizes and chars are maintained
	sizes    []int32 // characters of each entry
	chars    int     // their sum

	contents []prefix.Content // of each entry
	ids      []uint64         // hashes of the ids of entries
}

// NewView returns a session without messages. Characters of messages are counted if measured
// is set, their bytes if weighed is.
func NewView(measured, weighed bool, c *Compactor) *View {
	return &View{State: store.State{First: 1}, Begin: 1, User: -1, Measured: measured, Weighed: weighed, Compactor: c}
}

// Shortened returns the view with short forms of old messages, itself if there are none.
func (v *View) Shortened() *View {
	if v.Compactor == nil || v.Compactor.ToolResults == 0 || len(v.Short) > 0 || v.tools == 0 {
		return v
	}
	entries, short := v.Compactor.shorten(v.Entries, v.Places)
	if len(short) == 0 {
		return v
	}
	c := *v
	c.Entries, c.Short, c.Tokens = entries, short, v.Tokens-SumTokens(v.Entries)+SumTokens(entries)
	return &c
}

// withoutImages returns the view with captions in place of old images, itself if there are
// none.
func (v *View) withoutImages() *View {
	if v.Compactor.ImageRounds == 0 || v.images == 0 || len(v.Plain) > 0 {
		return v
	}
	entries, plain := v.Compactor.withoutImages(v.Entries)
	if len(plain) == 0 {
		return v
	}
	c := *v
	c.Entries, c.Plain, c.Tokens = entries, plain, v.Tokens-SumTokens(v.Entries)+SumTokens(entries)
	return &c
}

// Append adds a message at the end.
func (v *View) Append(e *store.Entry) {
	if IsUser(e) {
		v.User = len(v.Entries)
		v.users++
	}
	if n := len(v.Entries); n == cap(v.Entries) {
		// Entries that left the window are freed when the array is replaced, so the room is
		// small, unless a store in this process has them too.
		room := n/8 + 2
		if v.Stored != nil {
			room = n/2 + 4
		}
		v.Entries = append(make([]*store.Entry, 0, n+room), v.Entries...)
	}
	v.Entries, v.newest = append(v.Entries, e), e.Seq
	v.Tokens += e.Tokens
	if IsToolUse(e) {
		v.tools++
	}
	if hasImage(e) {
		v.images++
	}
	if v.Weighed {
		v.Bytes += approximateBytes(e)
	}
	v.contents = append(v.contents, prefix.ContentOf(&e.Message, e.Message.Blocks))
	v.ids = append(v.ids, xxhash.Sum64String(e.Message.ID))
	if v.Measured {
		n := Characters(&e.Message)
		v.sizes = append(v.sizes, int32(min(n, 1<<30)))
		v.chars += n
	}
}

// Has reports whether the window has a message with this id.
func (v *View) Has(id string) bool {
	if v.System != nil && v.System.Message.ID == id {
		return true
	}
	hash := xxhash.Sum64String(id)
	for i, h := range slices.Backward(v.ids) {
		if h == hash && v.Entries[i].Message.ID == id {
			return true
		}
	}
	return false
}

// IsComplete reports whether the window is the whole history.
func (v *View) IsComplete() bool {
	n := len(v.Entries)
	if v.System != nil {
		n++
	}
	return v.State.Last == int64(n)
}

// HasToolUse reports whether an entry has tool calls or answers one.
func (v *View) HasToolUse() bool { return v.tools > 0 }

// unit returns how many entries leave together with the one at an index.
func (v *View) unit(i int) int {
	if v.tools == 0 {
		return 1
	}
	return unit(v.Entries[i:])
}

// Remove removes a set of entries.
func (v *View) Remove(s Eviction) {
	for from, to := range s.Runs {
		for i, e := range v.Entries[from:to] {
			v.Tokens -= e.Tokens
			if IsUser(e) {
				v.users--
			}
			if v.tools > 0 && IsToolUse(e) {
				v.tools--
			}
			if v.images > 0 && hasImage(e) {
				v.images--
			}
			if v.Weighed {
				v.Bytes -= approximateBytes(e)
			}
			if v.Measured {
				v.chars -= int(v.sizes[from+i])
			}
		}
	}
	if s.Prefix > 0 {
		v.Begin = v.Entries[s.Prefix-1].Seq + 1 // the next message may have its position already
	}
	if s.Has(len(v.Entries) - 1) {
		v.newest = 0
	}
	sparse := len(v.Gaps) > 0 || len(s.others) > 0
	newest := v.newestEvicted(s)
	if v.Measured {
		v.sizes = restOf(s, v.sizes)
	}
	v.Entries, v.contents, v.ids = s.Rest(v.Entries), restOf(s, v.contents), restOf(s, v.ids)
	if len(s.others) == 0 {
		v.User = max(v.User-s.Prefix, -1)
	} else {
		v.User = LastUser(v.Entries)
	}
	if len(v.Entries) > 0 {
		v.Begin = v.Entries[0].Seq
	}
	if sparse {
		v.setGaps(newest)
	}
}

// newestEvicted returns the highest position that left the window, s included, 0 for none.
func (v *View) newestEvicted(s Eviction) int64 {
	var newest int64
	if n := len(v.Gaps); n > 0 {
		newest = v.Gaps[n-1].To
	}
	for _, to := range s.Runs {
		newest = max(newest, v.Entries[to-1].Seq)
	}
	return newest
}

// setGaps derives gaps from the entries: every position between two of them is
// failed, a system message, or evicted, and none of those returns. newest is
// the highest position that was evicted.
func (v *View) setGaps(newest int64) {
	v.Gaps = nil
	if len(v.Entries) == 0 {
		v.Begin = max(v.Begin, newest+1)
		return
	}
	for i, e := range v.Entries {
		next := newest + 1
		if i+1 < len(v.Entries) {
			next = v.Entries[i+1].Seq
		}
		if e.Seq > 0 && next > e.Seq+1 { // messages of a turn that has not ended have no position
			v.Gaps = append(v.Gaps, store.Range{From: e.Seq + 1, To: next - 1})
		}
	}
}

// RemoveOrphans removes tool results from an index on whose calls are not there. Events
// that policies record never divide them; events of an import may.
func (v *View) RemoveOrphans(from int) {
	calls := map[string]bool{"": true}
	var orphans []int
	for i, e := range v.Entries {
		for _, c := range e.Message.Calls() {
			calls[c.ID] = true
		}
		if i >= from && IsResult(e) && !calls[e.Message.ToolCallID] {
			orphans = append(orphans, i)
		}
	}
	if len(orphans) > 0 {
		v.Remove(EvictIndexes(orphans))
	}
}

// rounds returns the number of rounds. Messages before the first user message
// are a round too.
func (v *View) rounds() int {
	if len(v.Entries) > 0 && !IsUser(v.Entries[0]) {
		return int(v.users) + 1
	}
	return int(v.users)
}

// EndsWithText reports whether the newest message of the session is in the window, and has
// neither tool calls nor their results. It looks at no entry: one that was added long ago is not
// in a cache.
func (v *View) EndsWithText() bool { return v.tools == 0 && v.newest > 0 && v.newest == v.State.Last }

// MinSeq returns the lowest position that the window can ever contain.
func (v *View) MinSeq() int64 { return max(v.State.Floor, 1) }

// SystemEntry returns the session's system message, otherwise the step's, nil for none.
func (v *View) SystemEntry() *store.Entry {
	if v.System != nil {
		return v.System
	}
	return v.Step
}

// SystemCount returns the number of system messages: 0 or 1.
func (v *View) SystemCount() int {
	if v.SystemEntry() == nil {
		return 0
	}
	return 1
}

// SystemTokens returns the tokens of the system message, 0 for none.
func (v *View) SystemTokens() int {
	if e := v.SystemEntry(); e != nil {
		return e.Tokens
	}
	return 0
}
