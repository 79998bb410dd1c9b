package ranking

import (
	"math"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/vectors"
)

// scores are the scores of documents, which get shares of those of their neighbors. Most documents are never asked for.
type scores struct {
	*ranker
	own             []float32 // of each document, 0 for none
	before, after   []float32 // the shares of the scores of the documents 1, 2, … before and after
	mean, deviation float64   // of similarities
}

// scratch has what a search needs of each document.
type scratch struct {
	own, similar []float32
	masks        []uint64        // which terms of the query it has
	marked       []bool          // all false between uses
	norms        [1 << 8]float64 // of documents by their numbers of words
	near         []int32
	candidates   []vectors.Match
	spread       distribution
}

// scratches keeps a search from allocating them.
//
//nolint:gochecknoglobals // a pool
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// zeros returns n zeros in the memory of a slice, if it has room.
func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// of returns the score of a document.
func (s *scores) of(doc int32) float32 {
	near := float32(0)
	other := doc
	for _, share := range s.before {
		if other = s.neighbor(other, s.docs[other].previous); other < 0 {
			break
		}
		near += share * s.own[other]
	}
	other = doc
	for _, share := range s.after {
		if other = s.neighbor(other, s.docs[other].next); other < 0 {
			break
		}
		near += share * s.own[other]
	}
	if near == 0 {
		return s.own[doc]
	}
	return s.own[doc] + near*s.damping(doc)
}

// best returns the n documents with the highest scores, in any order; it is valid until the next call. It computes the
// shares of neighbors only for documents that may be among them: such a document, or one near it, has
// a score of its own of at least the n-th best score divided by the greatest sum of shares.
func (s *scores) best(n int) []vectors.Match {
	spread := &s.scratch.spread
	*spread = distribution{}
	lowest, shares := float32(0), float32(0)
	for doc, score := range s.own {
		if score > 0 && s.mayMatch(int32(doc)) {
			spread.add(score)
		}
		lowest = min(lowest, score)
	}
	for _, of := range [][]float32{s.before, s.after} {
		for _, share := range of {
			shares += share
		}
	}
	least := spread.least(n) + shares*lowest*1.001 // n documents have this score, from which their neighbors take no more
	*spread = distribution{}
	candidates := s.scratch.candidates[:0]
	for _, doc := range s.around(max(least, 0) / (1 + shares)) {
		if score := s.of(doc); score > 0 && score >= least && s.mayMatch(doc) {
			candidates = append(candidates, vectors.Match{ID: int64(doc), Score: score})
			spread.add(score)
		}
	}
	s.scratch.candidates = candidates
	best := vectors.NewTop(n)
	least = spread.least(n)
	for _, one := range candidates {
		if one.Score >= least {
			best.Offer(one)
		}
	}
	return best.Matches()
}

// mayMatch reports whether a document may be a result.
func (r *ranker) mayMatch(doc int32) bool {
	return !r.docs[doc].dead && (r.query.Match == nil || r.query.Match(int(doc)))
}

// distribution counts positive scores in classes that differ by a sixteenth.
type distribution [1 << (31 - classBits)]int32

const classBits = 19 // of a float32 that a class does not have

func (d *distribution) add(score float32) { d[math.Float32bits(score)>>classBits]++ }

// least returns a number that at least n of the scores reach, and few others; 0 if there are fewer.
func (d *distribution) least(n int) float32 {
	for class := len(d) - 1; class >= 0; class-- {
		if n -= int(d[class]); n <= 0 {
			return math.Float32frombits(uint32(class) << classBits)
		}
	}
	return 0
}

// around returns the documents with a score of their own of at least a number, and those that get a share of it.
func (s *scores) around(least float32) []int32 {
	marked, docs := s.scratch.marked, s.scratch.near[:0]
	add := func(doc int32) {
		if !marked[doc] {
			marked[doc] = true
			docs = append(docs, doc)
		}
	}
	for at, score := range s.own {
		if score < least || score <= 0 || s.docs[at].dead {
			continue
		}
		add(int32(at))
		other := int32(at)
		for range s.after { // these are before it
			if other = s.neighbor(other, s.docs[other].previous); other < 0 {
				break
			}
			add(other)
		}
		other = int32(at)
		for range s.before {
			if other = s.neighbor(other, s.docs[other].next); other < 0 {
				break
			}
			add(other)
		}
	}
	for _, doc := range docs {
		marked[doc] = false
	}
	s.scratch.near = docs
	return docs
}
