package ranking

import (
	"math"
	"slices"

	"github.com/qtype-dev/qtype/internal/wordvectors"
)

const (
	maxSample  = 2048          // documents from which the distribution of similarities is computed
	sampleStep = 2_654_435_769 // 2³² times the golden ratio: multiples of it are spread evenly
)

// bySimilarity scores the documents by their vectors, those of an embedding model or else of their words.
func (r *ranker) bySimilarity() *scores {
	s := &scores{ranker: r, before: similarityAround, after: similarityAround}
	if r.query.Similar == nil && r.meanings != nil {
		s.own = r.cosines()
	} else {
		r.scratch.similar = grow(r.scratch.similar, len(r.docs))
		s.own = r.scratch.similar
		clear(s.own)
		for _, one := range r.query.Similar {
			if doc := int32(one.Doc); !r.dead[doc] {
				s.own[doc] = one.Score + r.boost(doc, namedSimilarity, datedSimilarity)
			}
		}
	}
	for _, score := range s.own {
		if score > s.most {
			s.most = score
		}
	}
	s.measure()
	return s
}

// cosines returns the similarity of each document with the query.
func (r *ranker) cosines() []float32 {
	var meaning wordvectors.Vector
	known := lexicon()
	for _, word := range r.plain {
		meaning.Add(&known.form(word).meaning)
	}
	r.scratch.similar = grow(r.scratch.similar, len(r.docs))
	out := r.scratch.similar
	r.meanings.Scan(r.meanings.NewQuery(meaning[:]), func(first int, cosines []float32) { copy(out[first:], cosines) })
	if len(r.periods) > 0 || slices.Contains(r.named, true) {
		for doc := range out {
			out[doc] += r.boost(int32(doc), namedSimilarity, datedSimilarity)
		}
	}
	return out
}

// measure computes the mean and the standard deviation of up to maxSample scores of documents with a vector.
func (s *scores) measure() {
	var sum, squares, n float64
	for i := range min(len(s.docs), maxSample) {
		doc := i
		if len(s.docs) > maxSample { // about evenly spread, and the same for the same query
			doc = int(uint64(uint32(i)*sampleStep) * uint64(len(s.docs)) >> 32)
		}
		if s.own[doc] == 0 || s.dead[doc] {
			continue
		}
		x := float64(s.of(int32(doc)))
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	n = max(n, 1)
	s.mean = sum / n
	s.deviation = max(math.Sqrt(max(squares/n-s.mean*s.mean, 0)), 1e-6)
}
