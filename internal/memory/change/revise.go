package change

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// ParsedRanges is store.ParseRanges for ranges that this package has written.
func ParsedRanges(text string) store.Ranges {
	r, _ := store.ParseRanges(text)
	return r
}

// Edit gives an entry of the next view another text.
func (t *Transition) Edit(old, text *store.Entry) {
	v, st := &t.Next, &t.Next.State
	edits := append(slices.Clone(st.Edits()), store.Edit{Of: old.Seq, By: text.Seq})
	st.Edited, st.Rewound = edits.String(), ParsedRanges(st.Rewound).Union(store.Range{From: text.Seq, To: text.Seq}).String()
	t.addEvent(store.Event{Kind: store.EventEdit, From: old.Seq, To: old.Seq, Messages: 1, Tokens: text.Tokens, By: text.Seq,
		Reason: fmt.Sprintf("message %d was edited", old.Seq)})
	texts := maps.Clone(v.Texts)
	if texts == nil {
		texts = map[int64]*store.Entry{}
	}
	texts[old.Seq] = text
	next := window.NewView(v.Measured, v.Weighed, v.Compactor)
	next.Version, next.State, next.Values, next.System, next.Step, next.Stored, next.Texts = v.Version, v.State, v.Values, v.System, v.Step, v.Stored, texts
	next.Begin, next.Gaps = v.Begin, v.Gaps.Union(store.Range{From: text.Seq, To: text.Seq})
	for _, e := range v.Entries {
		if e.Seq == old.Seq {
			e = store.WithText(e, text)
		}
		next.Append(e)
	}
	if len(next.Entries) == 0 {
		next.Begin, next.Gaps = text.Seq+1, nil
	}
	if v.System != nil && v.System.Seq == old.Seq {
		next.System = store.WithText(v.System, text)
	}
	t.Next = *next
}

// Remove removes entries from the conversation.
func (t *Transition) Remove(all []*store.Entry) {
	v, st := &t.Next, &t.Next.State
	var gone store.Ranges
	for _, e := range all {
		gone = gone.Union(store.Range{From: e.Seq, To: e.Seq})
	}
	st.Rewound = ParsedRanges(st.Rewound).Union(gone...).String()
	st.Deleted = ParsedRanges(st.Deleted).Union(gone...).String()
	for _, r := range gone {
		event := store.Event{Kind: store.EventDelete, From: r.From, To: r.To, Reason: deletionReason(r, len(all))}
		for _, e := range all {
			if e.Seq >= r.From && e.Seq <= r.To {
				event.Messages, event.Tokens = event.Messages+1, event.Tokens+e.Tokens
			}
		}
		t.addEvent(event)
	}
	st.Pinned = ParsedRanges(st.Pinned).Except(gone).String()
	var indexes []int
	for i, e := range v.Entries {
		if gone.Has(e.Seq) {
			indexes = append(indexes, i)
		}
	}
	if len(indexes) > 0 {
		v.Remove(window.EvictIndexes(indexes))
	}
}

// deletionReason returns the reason of an event; all is how many messages left.
func deletionReason(r store.Range, all int) string {
	switch {
	case r.To > r.From:
		return fmt.Sprintf("messages %d to %d were deleted: a tool call and its results", r.From, r.To)
	case all > 1:
		return fmt.Sprintf("message %d was deleted: it belongs to a tool call and its results", r.From)
	}
	return fmt.Sprintf("message %d was deleted", r.From)
}

// Pin adds entries to the pinned ones, or removes them.
func (t *Transition) Pin(all []*store.Entry, pin bool) {
	st := &t.Next.State
	event := store.Event{Kind: store.EventUnpin, From: all[0].Seq, To: all[len(all)-1].Seq, Messages: len(all), Tokens: window.SumTokens(all)}
	done := "is no longer pinned"
	var own store.Ranges
	for _, e := range all {
		own = own.Union(store.Range{From: e.Seq, To: e.Seq})
	}
	pins := ParsedRanges(st.Pinned)
	if pin {
		event.Kind, done = store.EventPin, "was pinned"
		pins = pins.Union(own...)
	} else {
		pins = pins.Except(own)
	}
	event.Reason = fmt.Sprintf("message %d %s", event.From, done)
	if len(all) > 1 {
		event.Reason = fmt.Sprintf("the tool call %d with its results %s", event.From, done)
	}
	st.Pinned = pins.String()
	t.addEvent(event)
}

// FirstRevised returns the position of the first message that was edited or deleted in one of two states of a session
// only; 0 for none.
func FirstRevised(a, b store.State) (first int64) {
	note := func(seq int64) {
		if first == 0 || seq < first {
			first = seq
		}
	}
	for _, states := range [][2]store.State{{a, b}, {b, a}} {
		others := states[1].Edits()
		for _, e := range states[0].Edits() {
			if !slices.Contains(others, e) {
				note(e.Of)
			}
		}
		if only := ParsedRanges(states[0].Deleted).Except(ParsedRanges(states[1].Deleted)); len(only) > 0 {
			note(only[0].From)
		}
	}
	return first
}

// Rewind makes t the transition to a window that follows from the events before e and from e. What a context has of messages
// from a position on is removed.
func (t *Transition) Rewind(p window.Policy, past *window.View, e store.Event, c dependent, from int64, now time.Time) {
	t.Begin(past, now)
	t.Next.State.Turns++
	t.Next.State.Extend(t.Now)
	t.addEvent(e)
	t.SetVariablesOf(e.Rewound - 1)
	t.DropContext(c, from)
	t.Settle(p)
}

// dependent has values that depend on messages: a context.
type dependent interface {
	// Stale returns what the values of a session become that depend on messages from a
	// position on; nil values are removed.
	Stale(h store.Head, from int64) map[string][]byte
}

// DropContext removes the values of a context that depend on messages from a position on.
func (t *Transition) DropContext(c dependent, from int64) {
	if c != nil {
		for name, value := range c.Stale(store.Head{Version: t.Next.Version, State: t.Next.State, Values: t.Next.Values}, from) {
			t.SetValue(name, value)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(t.Next.Values)) { // of a context that the memory had earlier
		if !slices.Contains([]string{StepSystemValue, IdempotencyValue, budget.CalibrationValue, RequestValue, repairsValue, LeaseValue, variablesValue, replacedValue}, name) {
			t.SetValue(name, nil)
		}
	}
}

// Refit evicts what the policy does not keep of a revised conversation, and completes the
// state.
func (t *Transition) Refit(p window.Policy, rule spec.Policy, base *window.View) {
	if n := len(t.Next.Entries); n > 0 {
		open := t.Next.State.Open // no result follows its call here
		t.Next.State.Open = false
		t.evict(p, rule, n-1, t.Next.User, false)
		t.Next.State.Open = t.Next.State.Open || open
	}
	t.Settle(p)
	if r, ok := p.(window.Rereader); ok {
		if e := r.Evicted(&t.Next, base.State.First, base.Entries, nil); e != nil {
			t.Change.Events = append(t.Change.Events, *e)
			t.Next.State.Flushes++
		}
	}
}

// TimelineOfNext returns a timeline with the revisions of the next view, which locates
// the system message again.
func (t *Transition) TimelineOfNext() *Timeline {
	l := &Timeline{Returned: true, rewound: ParsedRanges(t.Next.State.Rewound)}
	for _, e := range t.Next.State.Edits() {
		l.edited = append(l.edited, turnEdit{Edit: e})
	}
	return l
}
