package embedded

import (
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/vectors"
)

const (
	// maxTies is the number of vectors with the score of the last match that are compared
	// by id.
	maxTies = 10_000
	// Of an index with codes, more candidates than matches are ranked by their vectors.
	candidateFactor, moreCandidates = 3, 20
	// probedShare is the share of the clusters that a search compares by default.
	probedShare, minProbes = 10, 16
)

// nearest finds the entries with the nearest vectors.
func (s *searcher) nearest(limit int) ([]hit, error) {
	if len(s.q.Vector) == 0 {
		return nil, userErrorf("the query has no vector")
	}
	for _, v := range s.q.Vector {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, userErrorf("the vector of the query has a value that is not a finite number")
		}
	}
	found, err := s.x.refresh(s.ctx, s.c)
	if err != nil || !found {
		return nil, err
	}
	k := &s.c.Statements.cache
	k.mu.RLock()
	defer k.mu.RUnlock()
	if err := s.x.checkModel(k, s.q.Model); err != nil {
		return nil, err
	}
	if k.state.dimensions != len(s.q.Vector) {
		return nil, userErrorf("the vector of the query has length %d, those of the index %d: was the index made with another model?", len(s.q.Vector), k.state.dimensions)
	}
	candidates := limit + 1
	if s.x.opts.Encoding == vectors.Int8 {
		candidates = candidateFactor*limit + moreCandidates
	}
	matches, err := s.scan(vectors.NewTop(candidates), -2)
	if err != nil {
		return nil, err
	}
	if n := len(matches); n == candidates && matches[n-1].Score == matches[limit-1].Score {
		if matches, err = s.scan(vectors.NewTop(maxTies), matches[n-1].Score); err != nil {
			return nil, err
		}
	}
	return s.rank(matches, limit)
}

// scan compares the query with the vectors, and returns those with at least a score that
// the Top keeps.
func (s *searcher) scan(top *vectors.Top, least float32) ([]vectors.Match, error) {
	k := &s.c.Statements.cache
	query := vectors.NewMatrix(s.x.opts.Encoding, k.state.dimensions).NewQuery(s.q.Vector)
	for _, number := range s.probed(query) {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		one := k.cells[number]
		if one == nil {
			continue
		}
		if !one.resident {
			one = &cell{}
			if err := s.x.readCell(s.ctx, s.c.Read, number, one, k.state.dimensions); err != nil {
				return nil, err
			}
		}
		one.rows.Scan(query, func(first int, scores []float32) {
			for i, score := range scores {
				if floor, full := top.Floor(); score < least || full && score < floor {
					continue
				}
				if entry := one.entries[first+i]; entry > 0 && s.allow.has(entry) {
					top.Offer(vectors.Match{ID: entry, Score: score})
				}
			}
		})
	}
	return top.Sorted(), nil
}

// probed returns the cells to compare. With a filter all are: the clusters nearest to the
// query may not have enough entries that match.
func (s *searcher) probed(query *vectors.Query) []int64 {
	k := &s.c.Statements.cache
	if k.centers == nil || s.allow != nil || s.x.opts.Approximate == Never {
		return k.order
	}
	probes := s.x.opts.Probes
	if probes == 0 {
		probes = max(minProbes, k.centers.Rows()/probedShare)
	}
	top := vectors.NewTop(probes)
	k.centers.Scan(query, func(first int, scores []float32) {
		for i, score := range scores {
			top.Offer(vectors.Match{ID: int64(first+i) + 1, Score: score})
		}
	})
	var cells []int64
	for _, m := range top.Sorted() {
		cells = append(cells, m.ID)
	}
	return cells
}

// rank returns the best of the matches, by their exact vectors.
func (s *searcher) rank(matches []vectors.Match, limit int) ([]hit, error) {
	hits := make([]hit, len(matches))
	for i, m := range matches {
		hits[i] = hit{entry: m.ID, score: float64(m.Score)}
	}
	if s.x.opts.Encoding == vectors.Int8 {
		var err error
		if hits, err = s.scoreExactly(hits); err != nil {
			return nil, err
		}
	}
	hits, err := s.identify(keepBest(hits, limit))
	hits = hits[:min(limit, len(hits))]
	if err != nil || s.x.opts.Encoding == vectors.Int8 {
		return hits, err
	}
	return hits, s.readVectors(hits)
}

// scoreExactly sets the cosines with the exact vectors, and drops hits that were deleted
// since they were found.
func (s *searcher) scoreExactly(hits []hit) ([]hit, error) {
	if err := s.readVectors(hits); err != nil {
		return nil, err
	}
	query := slices.Clone(s.q.Vector)
	vectors.Normalize(query)
	kept := hits[:0]
	for _, h := range hits {
		if len(h.vector) != len(query) {
			continue
		}
		unit := slices.Clone(h.vector)
		vectors.Normalize(unit)
		h.score = float64(vectors.Dot(query, unit))
		kept = append(kept, h)
	}
	return kept, nil
}

// keepBest returns the hits with the best scores: limit, and those with the score of the
// last one.
func keepBest(hits []hit, limit int) []hit {
	sortHits(hits) // ids are not set: by score
	if len(hits) <= limit {
		return hits
	}
	end := limit
	for end < len(hits) && hits[end].score == hits[limit-1].score {
		end++
	}
	return hits[:end]
}
