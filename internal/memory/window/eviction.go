package window

import (
	"slices"
	"sort"

	"github.com/qtype-dev/qtype/memory/store"
)

// Eviction is a set of entries of a view, by index: the first ones, and others.
type Eviction struct {
	Prefix int   // the number of first entries in the set
	others []int // further indexes, ascending
}

func evictPrefix(n int) Eviction { return Eviction{Prefix: n} }

// EvictIndexes returns the set of the given indexes, which must be ascending.
func EvictIndexes(indexes []int) Eviction {
	n := 0
	for n < len(indexes) && indexes[n] == n {
		n++
	}
	return Eviction{Prefix: n, others: indexes[n:]}
}

// Size returns the number of entries in the set.
func (s Eviction) Size() int { return s.Prefix + len(s.others) }

// Has reports whether the entry at an index is in the set.
func (s Eviction) Has(i int) bool {
	if i < s.Prefix {
		return true
	}
	_, found := slices.BinarySearch(s.others, i)
	return found
}

// Before returns how many entries of the set have a lower index than i.
func (s Eviction) Before(i int) int {
	return min(i, s.Prefix) + sort.SearchInts(s.others, i)
}

// Rest returns the entries that are not in the set. For a prefix it shares the array.
func (s Eviction) Rest(entries []*store.Entry) []*store.Entry { return restOf(s, entries) }

// restOf is Rest for what a view has for each entry.
func restOf[T any](s Eviction, all []T) []T {
	if len(s.others) == 0 {
		return all[s.Prefix:]
	}
	out := make([]T, 0, len(all)-s.Size())
	for i := s.Prefix; i < len(all); i++ {
		if !s.Has(i) {
			out = append(out, all[i])
		}
	}
	return out
}

// Runs yields the set as ranges of indexes, the end excluded.
func (s Eviction) Runs(yield func(from, to int) bool) {
	if s.Prefix > 0 && !yield(0, s.Prefix) {
		return
	}
	for i := 0; i < len(s.others); {
		j := i + 1
		for j < len(s.others) && s.others[j] == s.others[j-1]+1 {
			j++
		}
		if !yield(s.others[i], s.others[j-1]+1) {
			return
		}
		i = j
	}
}

// withToolResults adds what a tool call and the results that directly follow it
// need to leave together.
func (s Eviction) withToolResults(entries []*store.Entry) Eviction {
	if len(s.others) == 0 && (s.Prefix == 0 || s.Prefix == len(entries) || !IsResult(entries[s.Prefix])) {
		return s // the usual case: a prefix that ends before another message
	}
	var indexes []int
	for i := 0; i < len(entries); {
		n := unit(entries[i:])
		if s.Before(i+n) > s.Before(i) {
			for j := range n {
				indexes = append(indexes, i+j)
			}
		}
		i += n
	}
	return EvictIndexes(indexes)
}

// withOrphans adds the results at index own and after it: their call left before they came.
func (s Eviction) withOrphans(entries []*store.Entry, own int) Eviction {
	end := own
	for end < len(entries) && IsResult(entries[end]) {
		end++
	}
	var indexes []int
	for i := range entries {
		if s.Has(i) || i >= own && i < end {
			indexes = append(indexes, i)
		}
	}
	return EvictIndexes(indexes)
}

// unit returns how many of the entries leave together with the first one: a
// tool call and the results that directly follow it. A system message between
// them is not part of the entries.
func unit(entries []*store.Entry) int {
	n := 1
	if entries[0].Message.HasCalls() {
		for n < len(entries) && IsResult(entries[n]) {
			n++
		}
	}
	return n
}
