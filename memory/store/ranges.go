package store

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Range is a range of positions, both ends included.
type Range struct{ From, To int64 }

// Ranges are ascending ranges that neither overlap nor touch.
type Ranges []Range

// String returns the form of State.Evicted, such as "5-7,9".
func (r Ranges) String() string {
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = strconv.FormatInt(one.From, 10)
		if one.To > one.From {
			parts[i] += "-" + strconv.FormatInt(one.To, 10)
		}
	}
	return strings.Join(parts, ",")
}

// ParseRanges is the inverse of String.
func ParseRanges(text string) (Ranges, error) {
	if text == "" {
		return nil, nil
	}
	var out Ranges
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
		out = append(out, Range{from, to})
	}
	return out, nil
}

// Union returns the positions that are in r or in one of the others.
func (r Ranges) Union(others ...Range) Ranges {
	var out Ranges
	all := slices.Concat(r, others)
	slices.SortStableFunc(all, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	for _, one := range all {
		if n := len(out); n > 0 && one.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, one.To)
			continue
		}
		out = append(out, one)
	}
	return out
}

// Except returns the positions that are not in other ranges.
func (r Ranges) Except(other Ranges) Ranges {
	var out Ranges
	for _, one := range r {
		for seq := one.From; seq <= one.To; seq++ {
			if !other.Has(seq) {
				out = out.Union(Range{seq, seq})
			}
		}
	}
	return out
}

// Since returns the positions from a position on.
func (r Ranges) Since(from int64) Ranges {
	i := sort.Search(len(r), func(i int) bool { return r[i].To >= from })
	out := slices.Clone(r[i:])
	if len(out) > 0 {
		out[0].From = max(out[0].From, from)
	}
	return out
}

// Has reports whether a position is in one of the ranges.
func (r Ranges) Has(seq int64) bool {
	i := sort.Search(len(r), func(i int) bool { return r[i].To >= seq })
	return i < len(r) && r[i].From <= seq
}

// minGap is the shortest range that is worth a separate query: shorter ones
// are read and skipped.
const minGap = 256

// Outside yields the ranges from..to that a reader must query to get all
// positions that are not in r.
func (r Ranges) Outside(from, to int64, yield func(from, to int64) bool) {
	for _, gap := range r {
		if gap.To < from || gap.To-gap.From+1 < minGap {
			continue
		}
		if gap.From > from && !yield(from, min(gap.From-1, to)) {
			return
		}
		from = max(from, gap.To+1)
	}
	if from <= to {
		yield(from, to)
	}
}
