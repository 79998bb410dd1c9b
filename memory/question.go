package memory

import (
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// noteQuestion records the question before the first call of a model: the last user
// messages that were added, without other messages between them. They may be part of the
// window already.
func (t *Turn) noteQuestion() {
	switch {
	case len(t.question) > 0:
	case window.LastUser(t.staged) >= 0:
		t.question = slices.Clone(lastUsers(t.staged))
	default:
		t.question = t.repeated
	}
}

// lastUsers returns the last user messages without others between them.
func lastUsers(entries []*store.Entry) []*store.Entry {
	last := window.LastUser(entries)
	first := last
	for first > 0 && window.IsUser(entries[first-1]) {
		first--
	}
	return entries[first : last+1]
}

// keptIn returns the entries with the question and the pinned entries.
func (t *Turn) keptIn(v *window.View) window.Eviction {
	if len(t.question) == 0 {
		return v.Pinned()
	}
	pins := window.PinnedPositions(v)
	return window.KeptFrom(v.Entries, func(e *store.Entry) bool {
		return pins.Has(e.Seq) || window.IsUser(e) && slices.ContainsFunc(t.question, func(q *store.Entry) bool { return q.Message.ID == e.Message.ID })
	})
}

// fitted returns what the next call sends: the session as a Commit of the staged messages
// would leave it, but with the question. own is the index of the turn's first message
// among the remaining entries.
func (t *Turn) fitted() (next *window.View, sel window.Selection, own int) {
	v := *t.base // only this turn writes after the end of its array
	v.Step = t.step
	v.Others = t.others
	own = len(v.Entries)
	if v.Compactor != nil {
		v.Places = t.places()
	}
	for _, e := range change.WithoutDuplicates(t.policy, t.base.System, t.staged) {
		if window.IsSystem(e) {
			v.System, v.Pending, v.Tail = e, true, 0
		} else {
			v.Append(e)
			v.Tail++
		}
	}
	if n := len(v.Entries); n > own {
		s := window.Leaving(t.policy, &v, own, change.UserUpTo(&v, t.base, own), t.keptIn(&v))
		v.Remove(s)
		own -= s.Before(own)
	}
	next = window.Compacted(t.policy, &v)
	return next, window.SelectExcept(t.policy, next, t.keptIn(next)), own
}

// places returns the positions that the staged messages will get.
func (t *Turn) places() map[*store.Entry]int64 {
	places := map[*store.Entry]int64{}
	for i, e := range change.WithoutDuplicates(t.policy, t.base.System, t.staged) {
		places[e] = t.base.State.Last + int64(i) + 1
	}
	return places
}

// missing reports whether a call cannot be made, because what is sent exceeds the limit or
// lacks the newest messages of the turn.
func (t *Turn) missing(v *window.View, sel window.Selection) bool {
	sent := sel.Entries(v)
	if unit := t.newestUnit(); len(unit) > 0 {
		if n := len(sent); n == 0 || sent[n-1].Message.ID != unit[len(unit)-1].Message.ID {
			return true
		}
	}
	if len(t.staged) == 0 || window.IsSystem(t.staged[len(t.staged)-1]) {
		return false
	}
	used, limit, unit := t.usageOf(v, sent)
	return len(sent) == 0 || used > limit && (t.policy.CountsSystem() || unit == store.InCharacters)
}

// newestUnit returns the newest message that was added, with the tool call and the other
// results if it is a result; nil if its call is not there.
func (t *Turn) newestUnit() []*store.Entry {
	if len(t.staged) == 0 {
		return nil
	}
	all := slices.DeleteFunc(slices.Concat(t.base.Entries, t.staged), window.IsSystem)
	for i, e := range slices.Backward(all) {
		if !window.IsResult(e) {
			if n := len(all) - i; n == 1 || e.Message.HasCalls() {
				return all[i:]
			}
			break
		}
	}
	return nil
}

// usageOf returns how much of the limit entries use with the system message.
func (t *Turn) usageOf(v *window.View, entries []*store.Entry) (used, limit int, unit store.Unit) {
	all := *v
	all.Entries, all.Tokens = entries, window.SumTokens(entries)
	used, limit, unit = t.policy.Usage(window.SizeOf(t.policy, &all))
	if unit == store.InCharacters {
		for _, e := range entries {
			used += window.Characters(&e.Message)
		}
	}
	return used, limit, unit
}

// checkSent returns an error if the limit has no room for the question and the newest
// messages of the turn.
func (t *Turn) checkSent(v *window.View, sel window.Selection) error {
	if !t.missing(v, sel) {
		return nil
	}
	unit := t.newestUnit()
	if len(unit) == 0 {
		unit = t.staged[len(t.staged)-1:]
	}
	pinned := v.Pinned()
	needed := slices.DeleteFunc(slices.Clone(v.Entries), func(e *store.Entry) bool { return !v.State.IsPinned(e.Seq) })
	for _, e := range t.question {
		if !slices.Contains(needed, e) {
			needed = append(needed, e)
		}
	}
	for _, e := range unit {
		if !slices.Contains(needed, e) {
			needed = append(needed, e)
		}
	}
	used, limit, size := t.usageOf(v, needed)
	if len(needed) == 1 {
		return &EmptyWindowError{Memory: t.memory.id, Used: used, Limit: limit, Unit: size}
	}
	return &TurnSizeError{Memory: t.memory.id, Used: used, Limit: limit, Unit: size, Pinned: pinned.Size()}
}
