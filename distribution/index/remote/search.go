package remote

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// maxCandidates bounds how many entries are read for one search whose filter the store
// cannot express.
const maxCandidates = 10_000

// Search returns the best matches that satisfy a filter. fetch returns the best n
// candidates, in any order among equal scores. More candidates are read, at most 10,000,
// until enough of them satisfy the filter, if the store cannot express it, and until no
// entry can be missing that has the score of the last match and a smaller id.
func Search(limit int, f filter.Filter, exact bool, fetch func(n int) ([]index.Match, error)) ([]index.Match, error) {
	n := limit + 1
	if !exact {
		n = 4 * limit
	}
	for {
		n = min(n, max(limit, maxCandidates))
		found, err := fetch(n)
		if err != nil {
			return nil, err
		}
		complete := len(found) < n || n >= maxCandidates
		var lowest float64
		for i, m := range found {
			if i == 0 || m.Score < lowest {
				lowest = m.Score
			}
		}
		if f != nil {
			found = slices.DeleteFunc(found, func(m index.Match) bool { return !f.Match(m.Metadata) })
		}
		Sort(found)
		if complete || len(found) >= limit && found[limit-1].Score > lowest {
			return found[:min(limit, len(found))], nil
		}
		n *= 4
	}
}

// Sort orders matches by their scores, and those with equal scores by their ids.
func Sort(matches []index.Match) {
	slices.SortStableFunc(matches, func(a, b index.Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}

// Last returns the last entry of each id.
func Last(entries []index.Entry) []index.Entry {
	seen := make(map[string]bool, len(entries))
	kept := make([]index.Entry, 0, len(entries))
	for _, e := range slices.Backward(entries) {
		if !seen[e.ID] {
			seen[e.ID] = true
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// rankOffset weakens the influence of the first ranks in reciprocal rank fusion.
const rankOffset = 60

// SearchFunc returns the best matches of a query.
type SearchFunc = func(index.Query) ([]index.Match, error)

// ByMode searches by vector, by text or by both, as the query requests.
func ByMode(q index.Query, byVector, byText SearchFunc) ([]index.Match, error) {
	switch q.Mode {
	case index.ByVector:
		return byVector(q)
	case index.ByText:
		return byText(q)
	}
	return Hybrid(q, byVector, byText)
}

// Searches are the searches of a store. C is what the store knows of a collection.
type Searches[C any] struct {
	Dimensions       int                               // length of the vectors
	Find             func(context.Context) (*C, error) // returns the collection; nil if there is none
	ByVector, ByText func(context.Context, *C, index.Query) ([]index.Match, error)
}

// Run returns the best matches of a query, none if there is no collection.
func (s Searches[C]) Run(ctx context.Context, q index.Query) ([]index.Match, error) {
	if err := CheckQuery(q, s.Dimensions); err != nil {
		return nil, err
	}
	c, err := s.Find(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	return ByMode(q, func(q index.Query) ([]index.Match, error) { return s.ByVector(ctx, c, q) },
		func(q index.Query) ([]index.Match, error) { return s.ByText(ctx, c, q) })
}

// Hybrid combines the matches of two searches by reciprocal rank fusion.
func Hybrid(q index.Query, searches ...SearchFunc) ([]index.Match, error) {
	const minCandidates = 50
	part := q
	part.Limit = max(q.Limit, minCandidates)
	fused := map[string]index.Match{}
	for _, search := range searches {
		found, err := search(part)
		if err != nil {
			return nil, err
		}
		for rank, m := range found {
			known, ok := fused[m.ID]
			if ok {
				m.Highlights = append(known.Highlights, m.Highlights...)
			}
			m.Score = known.Score + 1/float64(rankOffset+rank+1)
			fused[m.ID] = m
		}
	}
	all := slices.Collect(maps.Values(fused))
	Sort(all)
	return all[:min(q.Limit, len(all))], nil
}
