// Package change makes the changes of sessions: a Transition is what one write does to a
// stored session, and the view that results from it. Every write of a memory is one. Nothing
// here reads a store: a Timeline has what the events of a session record of its window.
package change

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

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// StepSystemValue is the value with the system message that a step supplied
// last. `qtype memory show` prints it; it is not part of the history.
const StepSystemValue = "system"

// Transition is a change of a session and the view that results from it. Every
// write of a memory is one: appends, turns, replaced windows and values.
//
// It is used for one change after the other, so that an append allocates little.
type Transition struct {
	Change store.Change      // what the store applies, without version and state until complete
	Next   window.View       // the session after it
	Now    time.Time         // when it is made
	events *[2]store.Event   // an array for the events of the change, nil if the store keeps it
	values map[string][]byte // an empty map for the values of the change, nil if the store keeps it
}

// Reset makes t ready for another change, which Begin overwrites. With keep set, the store does
// keep the slices and the map of a change, and the next one has them again.
func (t *Transition) Reset(keep bool) {
	switch {
	case !keep:
		t.events, t.values = nil, nil
	case t.events == nil:
		t.events, t.values = new([2]store.Event), map[string][]byte{}
	}
	t.Begin(&window.View{}, time.Time{})
}

// Addition is what an append or a turn adds to a session.
type Addition struct {
	Entries []*store.Entry // the messages
	Each    bool           // every entry is an append in itself, otherwise they are one turn
	Step    *store.Entry   // the step's system message, nil for none
	Others  int            // what the calls of the turn need besides messages
}

// Begin makes t a transition that changes nothing.
func (t *Transition) Begin(base *window.View, now time.Time) {
	t.Change, t.Next, t.Now = store.Change{}, *base, now
	if t.events != nil {
		clear(t.events[:])
		clear(t.values)
		t.Change.Events = t.events[:0]
	}
}

// BeginTurn makes t a transition that adds the entries of a new turn to the
// history. Entries that an earlier attempt passed to the store belong to the
// store: copies are numbered.
func (t *Transition) BeginTurn(base *window.View, entries []*store.Entry, now time.Time) {
	t.Begin(base, now)
	st := &t.Next.State
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
	t.Change.Entries = entries
}

// Add makes t the transition that adds messages and evicts what the policy does
// not keep. It reports false if all messages are duplicates.
func (t *Transition) Add(p window.Policy, rule spec.Policy, base *window.View, a Addition, now time.Time) bool {
	entries := WithoutDuplicates(p, base.System, a.Entries)
	if len(entries) == 0 {
		return false
	}
	t.BeginTurn(base, entries, now)
	t.Next.Others = a.Others
	t.Next.Step = a.Step // the policy counts the system message of this turn
	own := len(t.Next.Entries)
	for _, e := range t.Change.Entries {
		t.put(e)
		if a.Each {
			t.evict(p, rule, len(t.Next.Entries)-1, t.Next.User, window.IsSystem(e))
		}
	}
	if n := len(t.Next.Entries); !a.Each && n > 0 {
		at := min(own, n-1)
		t.evict(p, rule, at, UserUpTo(&t.Next, base, at), own == n)
	}
	t.Next.Others = 0
	if a.Step == nil {
		t.Next.Step = base.Step
	} else {
		if text := a.Step.Message.Text(); string(t.Next.Values[StepSystemValue]) != text {
			t.SetValue(StepSystemValue, []byte(text))
		}
	}
	t.finish(p, base)
	return true
}

// put adds an entry to the view.
func (t *Transition) put(e *store.Entry) {
	if window.IsSystem(e) {
		t.Next.System, t.Next.State.System = e, e.Seq
	} else {
		t.Next.Append(e)
	}
}

// WithoutDuplicates returns the entries without system messages that are equal
// to the current one, if the policy counts system messages.
func WithoutDuplicates(p window.Policy, system *store.Entry, entries []*store.Entry) []*store.Entry {
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

// UserUpTo returns the index of the last user message up to own, the first
// entry after those of base, or -1.
func UserUpTo(next, base *window.View, own int) int {
	if window.IsUser(next.Entries[own]) {
		return own
	}
	return base.User
}

// Replace makes t the transition that replaces the window by entries.
func (t *Transition) Replace(p window.Policy, rule spec.Policy, base *window.View, entries []*store.Entry, now time.Time) {
	entries = WithoutDuplicates(p, nil, entries)
	t.BeginTurn(base, entries, now)
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
	empty.Version, empty.State, empty.Values, empty.Step = base.Version, t.Next.State, base.Values, base.Step
	empty.Begin = base.State.Last + 1
	empty.State.System, empty.State.First, empty.State.Floor, empty.State.Open, empty.State.Pinned = 0, empty.Begin, empty.Begin, false, ""
	t.Next = *empty
	for _, e := range t.Change.Entries {
		t.put(e)
	}
	if n := len(t.Next.Entries); n > 0 {
		t.evict(p, rule, n-1, t.Next.User, false)
	}
	t.finish(p, empty)
}

// Fail makes t the transition that adds the messages of a failed turn to the
// history and leaves the window as it is.
func (t *Transition) Fail(base *window.View, entries []*store.Entry, reason string, now time.Time) {
	t.BeginTurn(base, entries, now)
	e := store.Event{Kind: store.EventFailed, From: base.State.Last + 1, To: t.Next.State.Last, Messages: len(entries), Reason: reason}
	for _, entry := range t.Change.Entries {
		entry.Status = store.Failed
		e.Tokens += entry.Tokens
	}
	t.addEvent(e)
}

// addEvent adds an event of this turn.
func (t *Transition) addEvent(e store.Event) {
	e.Turn, e.Time = t.Next.State.Turns, t.Now
	t.Change.Events = append(t.Change.Events, e)
}

// evict fits the window to the policy; own and user are as for
// window.Policy.Evict. A new system message causes evictions only if it counts.
func (t *Transition) evict(p window.Policy, rule spec.Policy, own, user int, system bool) {
	v := &t.Next
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
	from := len(t.Change.Events)
	for low, high := range s.Runs {
		for i, e := range sent.Entries[low:high] {
			last := len(t.Change.Events) - 1
			if i == 0 || v.Gaps.Has(v.Entries[low+i-1].Seq+1) { // an event covers no messages that left before
				event.From = e.Seq
				t.addEvent(event)
				last++
			}
			run := &t.Change.Events[last]
			run.To, run.Messages, run.Tokens = e.Seq, run.Messages+1, run.Tokens+e.Tokens
		}
	}
	v.Remove(s)
	for i := range t.Change.Events[from:] {
		p.Describe(&t.Change.Events[from+i], v.Entries)
	}
	v.State.Flushes++
}

// finish completes the state, with an event for what left the window of a rereader.
func (t *Transition) finish(p window.Policy, base *window.View) {
	t.Settle(p)
	if r, ok := p.(window.Rereader); ok {
		if e := r.Evicted(&t.Next, base.State.First, base.Entries, t.Change.Entries); e != nil {
			t.Change.Events = append(t.Change.Events, *e)
			t.Next.State.Flushes++
		}
	}
}

// Settle makes the state that of the view's entries.
func (t *Transition) Settle(p window.Policy) {
	v := &t.Next
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

// SetValue sets a named value of the session; nil removes it.
func (t *Transition) SetValue(name string, value []byte) {
	if t.Change.Values == nil {
		if t.Change.Values = t.values; t.values == nil {
			t.Change.Values = map[string][]byte{}
		}
		t.Next.Values = maps.Clone(t.Next.Values)
	}
	if t.Next.Values == nil {
		t.Next.Values = map[string][]byte{}
	}
	t.Change.Values[name], t.Next.Values[name] = value, value
}

// IdempotencyValue is the value with the keys of the session's newest operations.
const IdempotencyValue = "operations"

// LeaseValue is the value with the turn that may commit, as JSON.
const LeaseValue = "lease"

const (
	repairsValue       = "repairs" // the value with the number of repairs that the newest call reported
	maxIdempotencyKeys = 64        // a retry comes soon or not at all
)

// MaxNotes is the number of newest operations whose notes a session keeps: a run that is repeated is in the middle of a few turns.
const MaxNotes = 4

// RecordOperation adds an idempotency key to the session, with the positions of the
// messages that were added under it, and a note without spaces.
func (t *Transition) RecordOperation(key, note string) {
	if key == "" {
		return
	}
	record, last := hashKey(key), t.Next.State.Last
	if n := len(t.Change.Entries); n > 0 {
		record = fmt.Sprintf("%s@%d-%d", record, last-int64(n)+1, last)
		if note != "" {
			record += ";" + note
		}
	}
	all := append(strings.Fields(string(t.Next.Values[IdempotencyValue])), record)
	all = all[max(len(all)-maxIdempotencyKeys, 0):]
	if old := len(all) - MaxNotes - 1; old >= 0 {
		all[old], _, _ = strings.Cut(all[old], ";")
	}
	t.SetValue(IdempotencyValue, []byte(strings.Join(all, " ")))
}

// OperationOf returns the record that the values of a session have of an idempotency key:
// hash, hash@from-to with the positions of the messages, or hash@from-to;note; empty if there is none.
func OperationOf(values map[string][]byte, key string) string {
	if key == "" {
		return ""
	}
	hash := hashKey(key)
	for record := range strings.FieldsSeq(string(values[IdempotencyValue])) {
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

// CallRecord is what the last call of a turn sent.
type CallRecord struct {
	First, Last string // ids of the first and the last message
	From, To    int64  // their positions, 0 for messages of the turn
	Messages    int
	Shortened   []*store.Entry // messages that were sent in a short form
	Plain       []*store.Entry // messages that were sent without their images
	Omitted     []*store.Entry // messages after the first one that were not sent
	Estimated   bool           // the messages were fitted with a margin
	Tokens      int
	Parts       *prefix.Parts // the request; nil if it is not known
	Differs     []Differing   // ids of messages in Call.Prefix that had no position yet
	Call        store.Call
}

// Differing is the id of a message that an element of Call.Prefix concerns.
type Differing struct {
	Index int // of the element
	ID    string
}

// RequestValue is the value with the parts of the newest request of a session.
const RequestValue = "request"

// recordParts stores the request, with the positions that its messages have by now.
func (t *Transition) recordParts(n *CallRecord) {
	position := func(id string) int64 {
		for _, added := range t.Change.Entries {
			if added.Message.ID == id {
				return added.Seq
			}
		}
		return 0
	}
	if len(n.Differs) > 0 {
		n.Call.Prefix = slices.Clone(n.Call.Prefix)
	}
	for _, d := range n.Differs {
		n.Call.Prefix[d.Index].Message = position(d.ID)
	}
	if n.Parts != nil && len(*n.Parts) > 0 {
		t.SetValue(RequestValue, prefix.Encode(*n.Parts, position))
	}
}

// StoredRepairs returns the repairs of the newest call of a session.
func StoredRepairs(values map[string][]byte) int {
	raw, stored := values[repairsValue]
	if !stored {
		return 0
	}
	n, _ := strconv.Atoi(string(raw)) // a number that RecordCall has written
	return n
}

// RecordCall adds an event with the turn's last call, and notes its repairs.
func (t *Transition) RecordCall(n *CallRecord) {
	if n == nil {
		return
	}
	if n.Call.Repairs != StoredRepairs(t.Next.Values) {
		t.SetValue(repairsValue, strconv.AppendInt(nil, int64(n.Call.Repairs), 10))
	}
	t.recordParts(n)
	e := store.Event{Kind: store.EventSent, Turn: t.Next.State.Turns, From: n.From, To: n.To, Messages: n.Messages,
		Tokens: n.Tokens, Call: &n.Call, Time: t.Next.State.LastSaid}
	for _, added := range t.Change.Entries { // the turn's messages have positions by now
		if added.Message.ID == n.First {
			e.From = added.Seq
		}
		if added.Message.ID == n.Last {
			e.To = added.Seq
		}
	}
	e.Call.Omitted, e.Call.Shortened = t.positionsOf(n.Omitted).String(), t.positionsOf(n.Shortened).String()
	e.Call.Imageless = t.positionsOf(n.Plain).String()
	t.Change.Events = slices.Insert(t.Change.Events, 0, e)
}

// positionsOf returns the positions of messages, of which some are added by the change.
func (t *Transition) positionsOf(entries []*store.Entry) store.Ranges {
	var all []store.Range
	for _, e := range entries {
		seq := e.Seq
		if i := slices.IndexFunc(t.Change.Entries, func(added *store.Entry) bool { return added.Message.ID == e.Message.ID }); i >= 0 {
			seq = t.Change.Entries[i].Seq
		}
		if seq > 0 {
			all = append(all, store.Range{From: seq, To: seq})
		}
	}
	return store.Ranges(nil).Union(all...)
}

// SetFactors stores the factors of the turn; a factor of another turn that is higher stays.
func (t *Transition) SetFactors(learned budget.Factors) {
	if len(learned) == 0 {
		return
	}
	stored := budget.FactorsOf(t.Next.Values)
	all := stored.Raised(learned)
	if maps.Equal(all, stored) {
		return
	}
	if raw, err := json.Marshal(all); err == nil { // numbers and texts only
		t.SetValue(budget.CalibrationValue, raw)
	}
}
