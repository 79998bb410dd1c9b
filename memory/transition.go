package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// stepSystemValue is the value with the system message that a step supplied
// last. `qtype memory show` prints it; it is not part of the history.
const stepSystemValue = "system"

// transition is a change of a session and the view that results from it. Every
// write of a memory is one: appends, turns, replaced windows and values.
//
// It is used for one change after the other, so that an append allocates little.
type transition struct {
	change store.Change // without version and state until complete
	next   window.View
	now    time.Time
	events *[2]store.Event // an array for the events of the change, nil if the store keeps it
}

// reset makes t ready for another change. With keep set, the store does not keep
// the slices of a change, and the next one has the array of events again.
func (t *transition) reset(keep bool) {
	events := t.events
	*t = transition{}
	switch {
	case !keep:
	case events == nil:
		t.events = new([2]store.Event)
	default:
		clear(events[:])
		t.events = events
	}
}

// addition is what an append or a turn adds to a session.
type addition struct {
	entries []*store.Entry
	each    bool         // every entry is an append in itself, otherwise they are one turn
	step    *store.Entry // the step's system message, nil for none
	others  int          // what the calls of the turn need besides messages
}

// begin makes t a transition that changes nothing.
func (t *transition) begin(base *window.View, now time.Time) {
	t.change, t.next, t.now = store.Change{}, *base, now
	if t.events != nil {
		t.change.Events = t.events[:0]
	}
}

// beginTurn makes t a transition that adds the entries of a new turn to the
// history. Entries that an earlier attempt passed to the store belong to the
// store: copies are numbered.
func (t *transition) beginTurn(base *window.View, entries []*store.Entry, now time.Time) {
	t.begin(base, now)
	st := &t.next.State
	st.Turns++
	st.Extend(now)
	if len(entries) > 0 && entries[0].Seq != 0 {
		entries = slices.Clone(entries)
		for i, e := range entries {
			c := *e
			entries[i] = &c
		}
	}
	for _, e := range entries {
		st.Last++
		e.Seq, e.Turn, e.Time, e.Status = st.Last, st.Turns, now, store.InWindow
	}
	t.change.Entries = entries
}

// add makes t the transition that adds messages and evicts what the policy does
// not keep. It reports false if all messages are duplicates.
func (t *transition) add(p window.Policy, rule spec.Policy, base *window.View, a addition, now time.Time) bool {
	entries := withoutDuplicates(p, base.System, a.entries)
	if len(entries) == 0 {
		return false
	}
	t.beginTurn(base, entries, now)
	t.next.Others = a.others
	t.next.Step = a.step // the policy counts the system message of this turn
	own := len(t.next.Entries)
	for _, e := range t.change.Entries {
		t.put(e)
		if a.each {
			t.evict(p, rule, len(t.next.Entries)-1, t.next.User, window.IsSystem(e))
		}
	}
	if n := len(t.next.Entries); !a.each && n > 0 {
		at := min(own, n-1)
		t.evict(p, rule, at, userUpTo(&t.next, base, at), own == n)
	}
	t.next.Others = 0
	if a.step == nil {
		t.next.Step = base.Step
	} else {
		if text := a.step.Message.Text(); string(t.next.Values[stepSystemValue]) != text {
			t.setValue(stepSystemValue, []byte(text))
		}
	}
	t.finish(p, base)
	return true
}

// put adds an entry to the view.
func (t *transition) put(e *store.Entry) {
	if window.IsSystem(e) {
		t.next.System, t.next.State.System = e, e.Seq
	} else {
		t.next.Append(e)
	}
}

// withoutDuplicates returns the entries without system messages that are equal
// to the current one, if the policy counts system messages.
func withoutDuplicates(p window.Policy, system *store.Entry, entries []*store.Entry) []*store.Entry {
	if !p.CountsSystem() || !slices.ContainsFunc(entries, window.IsSystem) {
		return entries
	}
	var out []*store.Entry
	for _, e := range entries {
		if window.IsSystem(e) {
			if system != nil && window.EqualSystem(&system.Message, &e.Message) {
				continue
			}
			system = e
		}
		out = append(out, e)
	}
	return out
}

// userUpTo returns the index of the last user message up to own, the first
// entry after those of base, or -1.
func userUpTo(next, base *window.View, own int) int {
	if window.IsUser(next.Entries[own]) {
		return own
	}
	return base.User
}

// replace makes t the transition that replaces the window by entries.
func (t *transition) replace(p window.Policy, rule spec.Policy, base *window.View, entries []*store.Entry, now time.Time) {
	entries = withoutDuplicates(p, nil, entries)
	t.beginTurn(base, entries, now)
	event := store.Event{Kind: store.EventSet, Reason: "the window was replaced"} // From is 0 if it was empty
	for _, e := range base.Entries {
		if e.Seq < base.State.First { // a rereader's view has more than the window
			continue
		}
		if event.Messages == 0 {
			event.From = e.Seq
		}
		event.To, event.Messages, event.Tokens = e.Seq, event.Messages+1, event.Tokens+e.Tokens
	}
	if base.State.Last > 0 {
		t.addEvent(event)
	}
	empty := window.NewView(base.Measured, base.Weighed, base.Compactor)
	empty.Version, empty.State, empty.Values, empty.Step = base.Version, t.next.State, base.Values, base.Step
	empty.Begin = base.State.Last + 1
	empty.State.System, empty.State.First, empty.State.Floor, empty.State.Open, empty.State.Pinned = 0, empty.Begin, empty.Begin, false, ""
	t.next = *empty
	for _, e := range t.change.Entries {
		t.put(e)
	}
	if n := len(t.next.Entries); n > 0 {
		t.evict(p, rule, n-1, t.next.User, false)
	}
	t.finish(p, empty)
}

// fail makes t the transition that adds the messages of a failed turn to the
// history and leaves the window as it is.
func (t *transition) fail(base *window.View, entries []*store.Entry, reason string, now time.Time) {
	t.beginTurn(base, entries, now)
	e := store.Event{Kind: store.EventFailed, From: base.State.Last + 1, To: t.next.State.Last, Messages: len(entries), Reason: reason}
	for _, entry := range t.change.Entries {
		entry.Status = store.Failed
		e.Tokens += entry.Tokens
	}
	t.addEvent(e)
}

// addEvent adds an event of this turn.
func (t *transition) addEvent(e store.Event) {
	e.Turn, e.Time = t.next.State.Turns, t.now
	t.change.Events = append(t.change.Events, e)
}

// evict fits the window to the policy; own and user are as for
// window.Policy.Evict. A new system message causes evictions only if it counts.
func (t *transition) evict(p window.Policy, rule spec.Policy, own, user int, system bool) {
	v := &t.next
	if len(v.Entries) == 0 || system && !p.CountsSystem() {
		return
	}
	s := window.Leaving(p, v, own, user, v.Pinned())
	if s.Size() == 0 {
		return
	}
	if v.Measured { // finish reports what left
		v.Remove(s)
		return
	}
	event := store.Event{Kind: store.EventFlush, Rule: rule}
	sent := window.Compacted(p, v)
	event.Before, event.Limit, event.Unit = p.Usage(window.SizeOf(p, sent))
	event.Others = v.Others
	from := len(t.change.Events)
	for low, high := range s.Runs {
		for i, e := range sent.Entries[low:high] {
			last := len(t.change.Events) - 1
			if i == 0 || v.Gaps.Has(v.Entries[low+i-1].Seq+1) { // an event covers no messages that left before
				event.From = e.Seq
				t.addEvent(event)
				last++
			}
			run := &t.change.Events[last]
			run.To, run.Messages, run.Tokens = e.Seq, run.Messages+1, run.Tokens+e.Tokens
		}
	}
	v.Remove(s)
	for i := range t.change.Events[from:] {
		p.Describe(&t.change.Events[from+i], v.Entries)
	}
	v.State.Flushes++
}

// finish completes the state, with an event for what left the window of a rereader.
func (t *transition) finish(p window.Policy, base *window.View) {
	t.settle(p)
	if r, ok := p.(window.Rereader); ok {
		if e := r.Evicted(&t.next, base.State.First, base.Entries, t.change.Entries); e != nil {
			t.change.Events = append(t.change.Events, *e)
			t.next.State.Flushes++
		}
	}
}

// settle makes the state that of the view's entries.
func (t *transition) settle(p window.Policy) {
	v := &t.next
	st := &v.State
	st.First, st.Evicted, st.InWindow, st.Tokens = v.Begin, v.Gaps.String(), len(v.Entries), window.Compacted(p, v).Tokens
	st.Keep, st.Kept, st.Used = 0, 0, 0 // the policy was another one before
	if r, ok := p.(window.Rereader); ok {
		st.Keep, st.Kept = v.Begin, len(v.Entries)
		sent := r.SelectForCall(v)
		if n := sent.Left.Prefix; n > 0 {
			st.First = v.Entries[n].Seq
			st.InWindow -= n
			for _, e := range v.Entries[:n] {
				st.Tokens -= e.Tokens
			}
		}
		st.Used = sent.Used
	}
}

// setValue sets a named value of the session; nil removes it.
func (t *transition) setValue(name string, value []byte) {
	if t.change.Values == nil {
		t.change.Values = map[string][]byte{}
		t.next.Values = maps.Clone(t.next.Values)
	}
	if t.next.Values == nil {
		t.next.Values = map[string][]byte{}
	}
	t.change.Values[name], t.next.Values[name] = value, value
}

const (
	repairsValue       = "repairs"    // the value with the number of repairs that the newest call reported
	idempotencyValue   = "operations" // the value with the keys of the session's newest operations
	leaseValue         = "lease"      // the value with the turn that may commit; see leaseRecord
	maxIdempotencyKeys = 64           // a retry comes soon or not at all
)

// recordOperation adds an idempotency key, with the positions of the messages
// that were added under it, to those of the session.
func (t *transition) recordOperation(key string) {
	if key == "" {
		return
	}
	record, last := hashKey(key), t.next.State.Last
	if n := len(t.change.Entries); n > 0 {
		record = fmt.Sprintf("%s@%d-%d", record, last-int64(n)+1, last)
	}
	all := append(strings.Fields(string(t.next.Values[idempotencyValue])), record)
	all = all[max(len(all)-maxIdempotencyKeys, 0):]
	t.setValue(idempotencyValue, []byte(strings.Join(all, " ")))
}

// operationOf returns the record that the values of a session have of an idempotency key:
// hash or hash@from-to with the positions of the messages; empty if there is none.
func operationOf(values map[string][]byte, key string) string {
	if key == "" {
		return ""
	}
	hash := hashKey(key)
	for _, record := range strings.Fields(string(values[idempotencyValue])) {
		if name, _, _ := strings.Cut(record, "@"); name == hash {
			return record
		}
	}
	return ""
}

// hashKey returns an idempotency key in a short form of fixed length.
func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// callRecord is what the last call of a turn sent.
type callRecord struct {
	first, last string // ids of the first and the last message
	from, to    int64  // their positions, 0 for messages of the turn
	messages    int
	shortened   []*store.Entry // messages that were sent in a short form
	plain       []*store.Entry // messages that were sent without their images
	omitted     []*store.Entry // messages after the first one that were not sent
	estimated   bool           // the messages were fitted with a margin
	tokens      int
	call        store.Call
}

// storedRepairs returns the repairs of the newest call of a session.
func storedRepairs(values map[string][]byte) int {
	n, _ := strconv.Atoi(string(values[repairsValue])) // 0 before the first repair
	return n
}

// recordCall adds an event with the turn's last call, and notes its repairs.
func (t *transition) recordCall(n *callRecord) {
	if n == nil {
		return
	}
	if n.call.Repairs != storedRepairs(t.next.Values) {
		t.setValue(repairsValue, strconv.AppendInt(nil, int64(n.call.Repairs), 10))
	}
	e := store.Event{Kind: store.EventSent, Turn: t.next.State.Turns, From: n.from, To: n.to, Messages: n.messages,
		Tokens: n.tokens, Call: &n.call, Time: t.next.State.LastSaid}
	for _, added := range t.change.Entries { // the turn's messages have positions by now
		if added.Message.ID == n.first {
			e.From = added.Seq
		}
		if added.Message.ID == n.last {
			e.To = added.Seq
		}
	}
	e.Call.Omitted, e.Call.Shortened = t.positionsOf(n.omitted).String(), t.positionsOf(n.shortened).String()
	e.Call.Imageless = t.positionsOf(n.plain).String()
	t.change.Events = append([]store.Event{e}, t.change.Events...)
}

// positionsOf returns the positions of messages, of which some are added by the change.
func (t *transition) positionsOf(entries []*store.Entry) store.Ranges {
	var all []store.Range
	for _, e := range entries {
		seq := e.Seq
		if i := slices.IndexFunc(t.change.Entries, func(added *store.Entry) bool { return added.Message.ID == e.Message.ID }); i >= 0 {
			seq = t.change.Entries[i].Seq
		}
		if seq > 0 {
			all = append(all, store.Range{From: seq, To: seq})
		}
	}
	return store.Ranges(nil).Union(all...)
}

// setFactors stores the factors of the turn; a factor of another turn that is higher stays.
func (t *transition) setFactors(learned factors) {
	stored := factorsOf(t.next.Values)
	all := stored.raised(learned)
	if len(learned) == 0 || maps.Equal(all, stored) {
		return
	}
	if raw, err := json.Marshal(all); err == nil { // numbers and texts only
		t.setValue(calibrationValue, raw)
	}
}
