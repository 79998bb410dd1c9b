package vectors

import (
	"cmp"
	"slices"
)

// Top keeps the best matches: those with the greatest scores, of equal ones those with
// the smallest ids. It is a heap whose root is the worst.
type Top struct {
	limit   int
	matches []Match
}

// NewTop returns a Top that keeps up to limit matches.
func NewTop(limit int) *Top { return &Top{limit: limit} }

// Floor returns the score that a match must reach to be kept; it reports false while
// any is kept.
func (t *Top) Floor() (float32, bool) {
	if len(t.matches) < t.limit {
		return 0, false
	}
	return t.matches[0].Score, true
}

func worse(a, b Match) bool { return a.Score < b.Score || a.Score == b.Score && a.ID > b.ID }

// Offer adds a match if it is among the best.
func (t *Top) Offer(m Match) {
	if len(t.matches) < t.limit {
		t.matches = append(t.matches, m)
		t.rise(len(t.matches) - 1)
		return
	}
	if t.limit > 0 && worse(t.matches[0], m) {
		t.matches[0] = m
		t.sink()
	}
}

func (t *Top) rise(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !worse(t.matches[i], t.matches[parent]) {
			return
		}
		t.matches[i], t.matches[parent] = t.matches[parent], t.matches[i]
		i = parent
	}
}

func (t *Top) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(t.matches) {
			return
		}
		if right := child + 1; right < len(t.matches) && worse(t.matches[right], t.matches[child]) {
			child = right
		}
		if !worse(t.matches[child], t.matches[i]) {
			return
		}
		t.matches[i], t.matches[child] = t.matches[child], t.matches[i]
		i = child
	}
}

// Matches returns the matches in any order.
func (t *Top) Matches() []Match { return t.matches }

// Sorted returns the matches, the best first. The Top must not be used afterwards.
func (t *Top) Sorted() []Match {
	slices.SortFunc(t.matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return t.matches
}
