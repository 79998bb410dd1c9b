package memory

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
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
func (s eviction) rest(entries []*Entry) []*Entry {
	if len(s.others) == 0 {
		return entries[s.prefix:]
	}
	out := make([]*Entry, 0, len(entries)-s.size())
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
func (s eviction) withToolResults(entries []*Entry) eviction {
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
func (s eviction) withOrphans(entries []*Entry, own int) eviction {
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
func unit(entries []*Entry) int {
	n := 1
	if len(entries[0].Message.ToolCalls) > 0 {
		for n < len(entries) && isResult(entries[n]) {
			n++
		}
	}
	return n
}

// seqRange is a range of positions, both ends included.
type seqRange struct{ from, to int64 }

// seqRanges are ascending ranges that neither overlap nor touch.
type seqRanges []seqRange

// String returns the form of State.Evicted, such as "5-7,9".
func (r seqRanges) String() string {
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = strconv.FormatInt(one.from, 10)
		if one.to > one.from {
			parts[i] += "-" + strconv.FormatInt(one.to, 10)
		}
	}
	return strings.Join(parts, ",")
}

// parseSeqRanges is the inverse of String.
func parseSeqRanges(text string) (seqRanges, error) {
	if text == "" {
		return nil, nil
	}
	var out seqRanges
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, errFrom := strconv.ParseInt(low, 10, 64)
		to, errTo := strconv.ParseInt(high, 10, 64)
		if errFrom != nil || errTo != nil || to < from {
			return nil, fmt.Errorf("invalid range of positions %q", part)
		}
		out = append(out, seqRange{from, to})
	}
	return out, nil
}

// union returns the positions that are in r or in one of the others.
func (r seqRanges) union(others ...seqRange) seqRanges {
	var out seqRanges
	all := slices.Concat(r, others)
	slices.SortFunc(all, func(a, b seqRange) int { return cmp.Compare(a.from, b.from) })
	for _, one := range all {
		if n := len(out); n > 0 && one.from <= out[n-1].to+1 {
			out[n-1].to = max(out[n-1].to, one.to)
			continue
		}
		out = append(out, one)
	}
	return out
}

// except returns the positions that are not in other ranges.
func (r seqRanges) except(other seqRanges) seqRanges {
	var out seqRanges
	for _, one := range r {
		for seq := one.from; seq <= one.to; seq++ {
			if !other.has(seq) {
				out = out.union(seqRange{seq, seq})
			}
		}
	}
	return out
}

// since returns the positions from a position on.
func (r seqRanges) since(from int64) seqRanges {
	i := sort.Search(len(r), func(i int) bool { return r[i].to >= from })
	out := slices.Clone(r[i:])
	if len(out) > 0 {
		out[0].from = max(out[0].from, from)
	}
	return out
}

func (r seqRanges) has(seq int64) bool {
	i := sort.Search(len(r), func(i int) bool { return r[i].to >= seq })
	return i < len(r) && r[i].from <= seq
}

// minGap is the shortest range that is worth a separate query: shorter ones
// are read and skipped.
const minGap = 256

// outside yields the ranges from..to that a reader must query to get all
// positions that are not in r.
func (r seqRanges) outside(from, to int64, yield func(from, to int64) bool) {
	for _, gap := range r {
		if gap.to < from || gap.to-gap.from+1 < minGap {
			continue
		}
		if gap.from > from && !yield(from, min(gap.from-1, to)) {
			return
		}
		from = max(from, gap.to+1)
	}
	if from <= to {
		yield(from, to)
	}
}
