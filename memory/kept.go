package memory

import "github.com/qtype-dev/qtype/memory/store"

// keptFrom returns the set of entries for which keep reports true.
func keptFrom(entries []*store.Entry, keep func(*store.Entry) bool) eviction {
	var indexes []int
	for i, e := range entries {
		if keep(e) {
			indexes = append(indexes, i)
		}
	}
	return evictIndexes(indexes)
}

// pinned returns the entries that are pinned.
func (v *view) pinned() eviction {
	pins := parsedPins(v)
	if len(pins) == 0 {
		return eviction{}
	}
	return keptFrom(v.entries, func(e *store.Entry) bool { return pins.Has(e.Seq) })
}

// parsedPins returns the positions of the pinned messages.
func parsedPins(v *view) store.Ranges {
	pins, _ := store.ParseRanges(v.state.Pinned) // written by this package
	return pins
}

// intersects reports whether two sets have an index in common.
func (s eviction) intersects(other eviction) bool {
	found := false
	other.runs(func(from, to int) bool {
		found = s.before(to) > s.before(from)
		return !found
	})
	return found
}

// except returns the set without another one.
func (s eviction) except(other eviction) eviction {
	if !s.intersects(other) {
		return s
	}
	var indexes []int
	for from, to := range s.runs {
		for i := from; i < to; i++ {
			if !other.has(i) {
				indexes = append(indexes, i)
			}
		}
	}
	return evictIndexes(indexes)
}

// without returns the view without entries that stay. Its tokens include theirs, and
// reserved is their number. index returns the index in v of one of its entries.
func (v *view) without(kept eviction) (rest *view, index func(i int) int) {
	r := *v
	r.entries, r.reserved = kept.rest(v.entries), kept.size()
	if v.measured {
		r.sizes = restOf(kept, v.sizes)
	}
	r.user, r.users, r.tools, r.images = lastUser(r.entries), 0, 0, 0
	var indexes []int
	for i, e := range v.entries {
		if kept.has(i) {
			continue
		}
		indexes = append(indexes, i)
		if isUser(e) {
			r.users++
		}
		if isToolUse(e) {
			r.tools++
		}
		if hasImage(e) {
			r.images++
		}
	}
	return &r, func(i int) int { return indexes[i] }
}

// evictExcept is evictionPolicy.evict for a view with entries that stay: others leave in
// their place.
func evictExcept(p evictionPolicy, v *view, own, user int, kept eviction) eviction {
	v = compacted(p, v)
	s := p.evict(v, own, user)
	if !s.intersects(kept) {
		return s
	}
	if _, ok := p.(rereader); ok {
		return s.except(kept)
	}
	rest, index := v.without(kept)
	if len(rest.entries) == 0 {
		return eviction{}
	}
	own = min(own-kept.before(own), len(rest.entries)-1)
	if user >= 0 {
		user -= kept.before(user) // the round continues there if its first message stays
	}
	var indexes []int
	for from, to := range p.evict(rest, own, user).runs {
		for i := from; i < to; i++ {
			indexes = append(indexes, index(i))
		}
	}
	return evictIndexes(indexes)
}

// selectExcept is evictionPolicy.selectForCall for a view with entries that are sent.
func selectExcept(p evictionPolicy, v *view, kept eviction) selection {
	sel := p.selectForCall(v)
	if !sel.left.intersects(kept) {
		return sel
	}
	if r, ok := p.(rereader); ok {
		return r.selectKept(v, kept)
	}
	return selection{left: evictExcept(p, v, 0, -1, kept)}
}

// leaving returns the entries that leave a view, and sets its state's Open: a
// tool call and its results leave together, independent of the result of the policy. own
// and user are as for evictionPolicy.evict, kept are entries that stay.
func leaving(p evictionPolicy, v *view, own, user int, kept eviction) eviction {
	s := evictExcept(p, v, own, user, kept)
	if v.tools > 0 {
		s = s.withToolResults(v.entries)
	}
	if v.state.Open {
		s = s.withOrphans(v.entries, own)
	}
	v.state.Open = s.size() > 0 && (v.tools > 0 || v.state.Open) && hasOpenCalls(v, s, own)
	return s
}

// hasOpenCalls reports whether results that are yet to come belong to a call
// that leaves with s, or left before the messages from own on.
func hasOpenCalls(v *view, s eviction, own int) bool {
	for i := len(v.entries) - 1; i >= 0; i-- {
		if !s.has(i) {
			return i < own && v.state.Open
		}
		if len(v.entries[i].Message.ToolCalls) > 0 {
			return true
		}
		if !isResult(v.entries[i]) {
			return false
		}
	}
	return v.state.Open
}
