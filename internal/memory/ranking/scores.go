package ranking

import (
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/vectors"
)

// scores are the scores of documents, which get shares of those of their neighbors. Most documents are never asked for.
type scores struct {
	*ranker
	own             []float32 // of each document, 0 for none
	before, after   []float32 // the shares of the scores of the documents 1, 2, … before and after
	mean, deviation float64   // of similarities
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

// best returns the n documents with the highest scores, the best first. It computes the shares of
// neighbors only for documents that may be among them: such a document, or one near it, has
// a score of its own of at least the n-th best score divided by the greatest sum of shares.
func (s *scores) best(n int) []scored {
	closest := vectors.NewTop(n)
	for doc, score := range s.own {
		if floor, full := closest.Floor(); score > 0 && (!full || score > floor) {
			s.offer(closest, int32(doc), score)
		}
	}
	least, most := float32(math.SmallestNonzeroFloat32), float32(1)
	if first := sorted(closest); len(first) == n {
		least = math.MaxFloat32
		for _, one := range first {
			least = min(least, s.of(one.doc))
		}
	}
	for _, share := range slices.Concat(s.before, s.after) {
		most += share
	}
	best := vectors.NewTop(n)
	for _, doc := range s.around(least / most) {
		if score := s.of(doc); score > 0 {
			s.offer(best, doc, score)
		}
	}
	return sorted(best)
}

// around returns the documents with a score of their own of at least a number, and those that get a share of it.
func (s *scores) around(least float32) (docs []int32) {
	added := make([]bool, len(s.own))
	add := func(doc int32) {
		if !added[doc] {
			added[doc] = true
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
	return docs
}
