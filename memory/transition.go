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
	change Change // without version and state until complete
	next   view
	now    time.Time
	events *[2]Event // an array for the events of the change, nil if the store keeps it
}

// reset makes t ready for another change. With keep set, the store does not keep
// the slices of a change, and the next one has the array of events again.
func (t *transition) reset(keep bool) {
	events := t.events
	*t = transition{}
	switch {
	case !keep:
	case events == nil:
		t.events = new([2]Event)
	default:
		clear(events[:])
		t.events = events
	}
}

// addition is what an append or a turn adds to a session.
type addition struct {
	entries []*Entry
	each    bool   // every entry is an append in itself, otherwise they are one turn
	step    *Entry // the step's system message, nil for none
	others  int    // what the calls of the turn need besides messages
}

// begin makes t a transition that changes nothing.
func (t *transition) begin(base *view, now time.Time) {
	t.change, t.next, t.now = Change{}, *base, now
	if t.events != nil {
		t.change.Events = t.events[:0]
	}
}

// extend notes the time of a message. It never goes back: the clock of a remote host, or
// one that was set back, must not end the session's ttl.
func (s *State) extend(now time.Time) {
	if now.After(s.LastSaid) {
		s.LastSaid = now
	}
}

// beginTurn makes t a transition that adds the entries of a new turn to the
// history. Entries that an earlier attempt passed to the store belong to the
// store: copies are numbered.
func (t *transition) beginTurn(base *view, entries []*Entry, now time.Time) {
	t.begin(base, now)
	st := &t.next.state
	st.Turns++
	st.extend(now)
	if len(entries) > 0 && entries[0].Seq != 0 {
		entries = slices.Clone(entries)
		for i, e := range entries {
			c := *e
			entries[i] = &c
		}
	}
	for _, e := range entries {
		st.Last++
		e.Seq, e.Turn, e.Time, e.Status = st.Last, st.Turns, now, InWindow
	}
	t.change.Entries = entries
}

// add makes t the transition that adds messages and evicts what the policy does
// not keep. It reports false if all messages are duplicates.
func (t *transition) add(p evictionPolicy, rule spec.Policy, base *view, a addition, now time.Time) bool {
	entries := withoutDuplicates(p, base.system, a.entries)
	if len(entries) == 0 {
		return false
	}
	t.beginTurn(base, entries, now)
	t.next.others = a.others
	t.next.step = a.step // the policy counts the system message of this turn
	own := len(t.next.entries)
	for _, e := range t.change.Entries {
		t.put(e)
		if a.each {
			t.evict(p, rule, len(t.next.entries)-1, t.next.user, isSystem(e))
		}
	}
	if n := len(t.next.entries); !a.each && n > 0 {
		at := min(own, n-1)
		t.evict(p, rule, at, userUpTo(&t.next, base, at), own == n)
	}
	t.next.others = 0
	if a.step == nil {
		t.next.step = base.step
	} else {
		if text := a.step.Message.Text(); string(t.next.values[stepSystemValue]) != text {
			t.setValue(stepSystemValue, []byte(text))
		}
	}
	t.finish(p, base)
	return true
}

// put adds an entry to the view.
func (t *transition) put(e *Entry) {
	if isSystem(e) {
		t.next.system, t.next.state.System = e, e.Seq
	} else {
		t.next.append(e)
	}
}

// withoutDuplicates returns the entries without system messages that are equal
// to the current one, if the policy counts system messages.
func withoutDuplicates(p evictionPolicy, system *Entry, entries []*Entry) []*Entry {
	if !p.countsSystem() || !slices.ContainsFunc(entries, isSystem) {
		return entries
	}
	var out []*Entry
	for _, e := range entries {
		if isSystem(e) {
			if system != nil && equalSystem(&system.Message, &e.Message) {
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
func userUpTo(next, base *view, own int) int {
	if isUser(next.entries[own]) {
		return own
	}
	return base.user
}

// replace makes t the transition that replaces the window by entries.
func (t *transition) replace(p evictionPolicy, rule spec.Policy, base *view, entries []*Entry, now time.Time) {
	entries = withoutDuplicates(p, nil, entries)
	t.beginTurn(base, entries, now)
	event := Event{Kind: EventSet, Reason: "the window was replaced"} // From is 0 if it was empty
	for _, e := range base.entries {
		if e.Seq < base.state.First { // a rereader's view has more than the window
			continue
		}
		if event.Messages == 0 {
			event.From = e.Seq
		}
		event.To, event.Messages, event.Tokens = e.Seq, event.Messages+1, event.Tokens+e.Tokens
	}
	if base.state.Last > 0 {
		t.addEvent(event)
	}
	empty := newView(base.measured, base.weighed, base.compactor)
	empty.version, empty.state, empty.values, empty.step = base.version, t.next.state, base.values, base.step
	empty.begin = base.state.Last + 1
	empty.state.System, empty.state.First, empty.state.Floor, empty.state.Open, empty.state.Pinned = 0, empty.begin, empty.begin, false, ""
	t.next = *empty
	for _, e := range t.change.Entries {
		t.put(e)
	}
	if n := len(t.next.entries); n > 0 {
		t.evict(p, rule, n-1, t.next.user, false)
	}
	t.finish(p, empty)
}

// fail makes t the transition that adds the messages of a failed turn to the
// history and leaves the window as it is.
func (t *transition) fail(base *view, entries []*Entry, reason string, now time.Time) {
	t.beginTurn(base, entries, now)
	e := Event{Kind: EventFailed, From: base.state.Last + 1, To: t.next.state.Last, Messages: len(entries), Reason: reason}
	for _, entry := range t.change.Entries {
		entry.Status = Failed
		e.Tokens += entry.Tokens
	}
	t.addEvent(e)
}

// addEvent adds an event of this turn.
func (t *transition) addEvent(e Event) {
	e.Turn, e.Time = t.next.state.Turns, t.now
	t.change.Events = append(t.change.Events, e)
}

// evict fits the window to the policy; own and user are as for
// evictionPolicy.evict. A new system message causes evictions only if it counts.
func (t *transition) evict(p evictionPolicy, rule spec.Policy, own, user int, system bool) {
	v := &t.next
	if len(v.entries) == 0 || system && !p.countsSystem() {
		return
	}
	s := leaving(p, v, own, user, v.pinned())
	if s.size() == 0 {
		return
	}
	if v.measured { // finish reports what left
		v.remove(s)
		return
	}
	event := Event{Kind: EventFlush, Rule: rule}
	sent := compacted(p, v)
	event.Before, event.Limit, event.Unit = p.usage(sizeOf(p, sent))
	event.Others = v.others
	from := len(t.change.Events)
	for low, high := range s.runs {
		for i, e := range sent.entries[low:high] {
			last := len(t.change.Events) - 1
			if i == 0 || v.gaps.has(v.entries[low+i-1].Seq+1) { // an event covers no messages that left before
				event.From = e.Seq
				t.addEvent(event)
				last++
			}
			run := &t.change.Events[last]
			run.To, run.Messages, run.Tokens = e.Seq, run.Messages+1, run.Tokens+e.Tokens
		}
	}
	v.remove(s)
	for i := range t.change.Events[from:] {
		p.describe(&t.change.Events[from+i], v.entries)
	}
	v.state.Flushes++
}

// finish completes the state, with an event for what left the window of a rereader.
func (t *transition) finish(p evictionPolicy, base *view) {
	t.settle(p)
	if r, ok := p.(rereader); ok {
		if e := r.evicted(&t.next, base.state.First, base.entries, t.change.Entries); e != nil {
			t.change.Events = append(t.change.Events, *e)
			t.next.state.Flushes++
		}
	}
}

// settle makes the state that of the view's entries.
func (t *transition) settle(p evictionPolicy) {
	v := &t.next
	st := &v.state
	st.First, st.Evicted, st.InWindow, st.Tokens = v.begin, v.gaps.String(), len(v.entries), compacted(p, v).tokens
	st.Keep, st.Kept, st.Used = 0, 0, 0 // the policy was another one before
	if r, ok := p.(rereader); ok {
		st.Keep, st.Kept = v.begin, len(v.entries)
		sent := r.selectForCall(v)
		if n := sent.left.prefix; n > 0 {
			st.First = v.entries[n].Seq
			st.InWindow -= n
			for _, e := range v.entries[:n] {
				st.Tokens -= e.Tokens
			}
		}
		st.Used = sent.used
	}
}

// setValue sets a named value of the session; nil removes it.
func (t *transition) setValue(name string, value []byte) {
	if t.change.Values == nil {
		t.change.Values = map[string][]byte{}
		t.next.values = maps.Clone(t.next.values)
	}
	if t.next.values == nil {
		t.next.values = map[string][]byte{}
	}
	t.change.Values[name], t.next.values[name] = value, value
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
	record, last := hashKey(key), t.next.state.Last
	if n := len(t.change.Entries); n > 0 {
		record = fmt.Sprintf("%s@%d-%d", record, last-int64(n)+1, last)
	}
	all := append(strings.Fields(string(t.next.values[idempotencyValue])), record)
	all = all[max(len(all)-maxIdempotencyKeys, 0):]
	t.setValue(idempotencyValue, []byte(strings.Join(all, " ")))
}

// hasOperation reports whether the session has committed a turn with an idempotency key.
func (v *view) hasOperation(key string) bool { return v.operation(key) != "" }

// operation returns the record of an idempotency key: hash or hash@from-to with
// the positions of the messages; empty if there is none.
func (v *view) operation(key string) string {
	if key == "" {
		return ""
	}
	hash := hashKey(key)
	for _, record := range strings.Fields(string(v.values[idempotencyValue])) {
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
	shortened   []*Entry // messages that were sent in a short form
	plain       []*Entry // messages that were sent without their images
	omitted     []*Entry // messages after the first one that were not sent
	estimated   bool     // the messages were fitted with a margin
	tokens      int
	call        Call
}

// storedRepairs returns the repairs of the newest call of a session.
func storedRepairs(values map[string][]byte) int {
	raw, stored := values[repairsValue]
	if !stored {
		return 0
	}
	n, _ := strconv.Atoi(string(raw)) // a number that recordCall has written
	return n
}

// recordCall adds an event with the turn's last call, and notes its repairs.
func (t *transition) recordCall(n *callRecord) {
	if n == nil {
		return
	}
	if n.call.Repairs != storedRepairs(t.next.values) {
		t.setValue(repairsValue, strconv.AppendInt(nil, int64(n.call.Repairs), 10))
	}
	e := Event{Kind: EventSent, Turn: t.next.state.Turns, From: n.from, To: n.to, Messages: n.messages,
		Tokens: n.tokens, Call: &n.call, Time: t.next.state.LastSaid}
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
	t.change.Events = slices.Insert(t.change.Events, 0, e)
}

// positionsOf returns the positions of messages, of which some are added by the change.
func (t *transition) positionsOf(entries []*Entry) seqRanges {
	var all []seqRange
	for _, e := range entries {
		seq := e.Seq
		if i := slices.IndexFunc(t.change.Entries, func(added *Entry) bool { return added.Message.ID == e.Message.ID }); i >= 0 {
			seq = t.change.Entries[i].Seq
		}
		if seq > 0 {
			all = append(all, seqRange{seq, seq})
		}
	}
	return seqRanges(nil).union(all...)
}

// setFactors stores the factors of the turn; a factor of another turn that is higher stays.
func (t *transition) setFactors(learned factors) {
	if len(learned) == 0 {
		return
	}
	stored := factorsOf(t.next.values)
	all := stored.raised(learned)
	if maps.Equal(all, stored) {
		return
	}
	if raw, err := json.Marshal(all); err == nil { // numbers and texts only
		t.setValue(calibrationValue, raw)
	}
}
