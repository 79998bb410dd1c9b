package memory

import (
	"slices"
	"sort"

	"github.com/qtype-dev/qtype/memory/store"
)

// eviction is a set of entries of a view, by index: the first ones, and others.
type eviction struct {
	prefix int   // the number of first entries in the set
	others []int // further indexes, ascending
}

func evictPrefix(n int) eviction { return eviction{prefix: n} }

// evictIndexes returns the set of the given indexes, which must be ascending.
func evictIndexes(indexes []int) eviction {
	n := 0
	for n < len(indexes) && indexes[n] == n {
		n++
	}
	return eviction{prefix: n, others: indexes[n:]}
}

func (s eviction) size() int { return s.prefix + len(s.others) }

func (s eviction) has(i int) bool {
	if i < s.prefix {
		return true
	}
	_, found := slices.BinarySearch(s.others, i)
	return found
}

// before returns how many entries of the set have a lower index than i.
func (s eviction) before(i int) int {
	return min(i, s.prefix) + sort.SearchInts(s.others, i)
}

// rest returns the entries that are not in the set. For a prefix it shares the array.
func (s eviction) rest(entries []*store.Entry) []*store.Entry {
	if len(s.others) == 0 {
		return entries[s.prefix:]
	}
	out := make([]*store.Entry, 0, len(entries)-s.size())
	for i := s.prefix; i < len(entries); i++ {
		if !s.has(i) {
			out = append(out, entries[i])
		}
	}
	return out
}

// runs yields the set as ranges of indexes, the end excluded.
func (s eviction) runs(yield func(from, to int) bool) {
	if s.prefix > 0 && !yield(0, s.prefix) {
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
func (s eviction) withToolResults(entries []*store.Entry) eviction {
	if len(s.others) == 0 && (s.prefix == 0 || s.prefix == len(entries) || !isResult(entries[s.prefix])) {
		return s // the usual case: a prefix that ends before another message
	}
	var indexes []int
	for i := 0; i < len(entries); {
		n := unit(entries[i:])
		if s.before(i+n) > s.before(i) {
			for j := range n {
				indexes = append(indexes, i+j)
			}
		}
		i += n
	}
	return evictIndexes(indexes)
}

// withOrphans adds the results at index own and after it: their call left before they came.
func (s eviction) withOrphans(entries []*store.Entry, own int) eviction {
	end := own
	for end < len(entries) && isResult(entries[end]) {
		end++
	}
	var indexes []int
	for i := range entries {
		if s.has(i) || i >= own && i < end {
			indexes = append(indexes, i)
		}
	}
	return evictIndexes(indexes)
}

// unit returns how many of the entries leave together with the first one: a
// tool call and the results that directly follow it. A system message between
// them is not part of the entries.
func unit(entries []*store.Entry) int {
	n := 1
	if len(entries[0].Message.ToolCalls) > 0 {
		for n < len(entries) && isResult(entries[n]) {
			n++
		}
	}
	return n
}
