package ranking

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/qtype-dev/qtype/internal/wordvectors"
)

// maxSample is the number of documents from which the distribution of similarities is computed.
const maxSample = 2048

// bySimilarity scores the documents by their vectors, those of an embedding model or else of their words.
func (r *ranker) bySimilarity() *scores {
	s := &scores{ranker: r, before: similarityAround, after: similarityAround}
	if r.query.Similar == nil && r.meanings != nil {
		s.own = r.cosines()
	} else {
		r.scratch.similar = zeros(r.scratch.similar, len(r.docs))
		s.own = r.scratch.similar
		for _, one := range r.query.Similar {
			if doc := int32(one.Doc); !r.docs[doc].dead {
				s.own[doc] = one.Score + r.boost(doc, namedSimilarity, datedSimilarity)
			}
		}
	}
	s.measure()
	return s
}

// cosines returns the similarity of each document with the query.
func (r *ranker) cosines() []float32 {
	var meaning wordvectors.Vector
	for _, word := range r.plain {
		meaning.Add(wordvectors.Default().Word(word))
	}
	r.scratch.similar = zeros(r.scratch.similar, len(r.docs))
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
	random := rand.New(rand.NewPCG(1, 2)) // the same documents for the same query
	for doc := range min(len(s.docs), maxSample) {
		if len(s.docs) > maxSample {
			doc = random.IntN(len(s.docs))
		}
		if s.own[doc] == 0 || s.docs[doc].dead {
			continue
		}
		x := float64(s.of(int32(doc)))
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	n = max(n, 1)
	s.mean = sum / n
	s.deviation = max(math.Sqrt(max(squares/n-s.mean*s.mean, 0)), 1e-6)
}
