package window

import "github.com/qtype-dev/qtype/memory/store"

// KeptFrom returns the set of entries for which keep reports true.
func KeptFrom(entries []*store.Entry, keep func(*store.Entry) bool) Eviction {
	var indexes []int
	for i, e := range entries {
		if keep(e) {
			indexes = append(indexes, i)
		}
	}
	return EvictIndexes(indexes)
}

// Pinned returns the entries that are pinned.
func (v *View) Pinned() Eviction {
	pins := PinnedPositions(v)
	if len(pins) == 0 {
		return Eviction{}
	}
	return KeptFrom(v.Entries, func(e *store.Entry) bool { return pins.Has(e.Seq) })
}

// PinnedPositions returns the positions of the pinned messages.
func PinnedPositions(v *View) store.Ranges {
	pins, _ := store.ParseRanges(v.State.Pinned) // written by this package
	return pins
}

// intersects reports whether two sets have an index in common.
func (s Eviction) intersects(other Eviction) bool {
	found := false
	other.Runs(func(from, to int) bool {
		found = s.Before(to) > s.Before(from)
		return !found
	})
	return found
}

// except returns the set without another one.
func (s Eviction) except(other Eviction) Eviction {
	if !s.intersects(other) {
		return s
	}
	var indexes []int
	for from, to := range s.Runs {
		for i := from; i < to; i++ {
			if !other.Has(i) {
				indexes = append(indexes, i)
			}
		}
	}
	return EvictIndexes(indexes)
}

// without returns the view without entries that stay. Its tokens include theirs, and
// reserved is their number. index returns the index in v of one of its entries.
func (v *View) without(kept Eviction) (rest *View, index func(i int) int) {
	r := *v
	r.Entries, r.contents, r.ids, r.reserved = kept.Rest(v.Entries), restOf(kept, v.contents), restOf(kept, v.ids), kept.Size()
	if v.Measured {
		r.sizes = restOf(kept, v.sizes)
	}
	r.User, r.users, r.tools, r.images = LastUser(r.Entries), 0, 0, 0
	var indexes []int
	for i, e := range v.Entries {
		if kept.Has(i) {
			continue
		}
		indexes = append(indexes, i)
		if IsUser(e) {
			r.users++
		}
		if IsToolUse(e) {
			r.tools++
		}
		if hasImage(e) {
			r.images++
		}
	}
	return &r, func(i int) int { return indexes[i] }
}

// evictExcept is Policy.Evict for a view with entries that stay: others leave in
// their place.
func evictExcept(p Policy, v *View, own, user int, kept Eviction) Eviction {
	v = Compacted(p, v)
	s := p.Evict(v, own, user)
	if !s.intersects(kept) {
		return s
	}
	if _, ok := p.(Rereader); ok {
		return s.except(kept)
	}
	rest, index := v.without(kept)
	if len(rest.Entries) == 0 {
		return Eviction{}
	}
	own = min(own-kept.Before(own), len(rest.Entries)-1)
	if user >= 0 {
		user -= kept.Before(user) // the round continues there if its first message stays
	}
	var indexes []int
	for from, to := range p.Evict(rest, own, user).Runs {
		for i := from; i < to; i++ {
			indexes = append(indexes, index(i))
		}
	}
	return EvictIndexes(indexes)
}

// SelectExcept is Policy.SelectForCall for a view with entries that are sent.
func SelectExcept(p Policy, v *View, kept Eviction) Selection {
	sel := p.SelectForCall(v)
	if !sel.Left.intersects(kept) {
		return sel
	}
	if r, ok := p.(Rereader); ok {
		return r.SelectKept(v, kept)
	}
	return Selection{Left: evictExcept(p, v, 0, -1, kept)}
}

// Leaving returns the entries that leave a view, and sets its state's Open: a
// tool call and its results leave together, independent of the result of the policy. own
// and user are as for Policy.Evict, kept are entries that stay.
func Leaving(p Policy, v *View, own, user int, kept Eviction) Eviction {
	s := evictExcept(p, v, own, user, kept)
	if v.tools > 0 {
		s = s.withToolResults(v.Entries)
	}
	if v.State.Open {
		s = s.withOrphans(v.Entries, own)
	}
	v.State.Open = s.Size() > 0 && (v.tools > 0 || v.State.Open) && hasOpenCalls(v, s, own)
	return s
}

// hasOpenCalls reports whether results that are yet to come belong to a call
// that leaves with s, or left before the messages from own on.
func hasOpenCalls(v *View, s Eviction, own int) bool {
	for i := len(v.Entries) - 1; i >= 0; i-- {
		if !s.Has(i) {
			return i < own && v.State.Open
		}
		if v.Entries[i].Message.HasCalls() {
			return true
		}
		if !IsResult(v.Entries[i]) {
			return false
		}
	}
	return v.State.Open
}
