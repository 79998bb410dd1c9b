package ranking

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/internal/wordvectors"
)

// maxSample is the number of documents from which the distribution of similarities is computed.
const maxSample = 8192

// similarities are the scores of documents by their vectors, with shares of those of their neighbors.
type similarities struct {
	of              func(doc int32) float32 // 0 for a document without a vector
	best            []scored
	mean, deviation float64
}

// bySimilarity scores the documents by their vectors, and returns the n best.
func (r *ranker) bySimilarity(n int) similarities {
	if r.query.Similar == nil && r.meanings != nil {
		return r.byMeaning(n)
	}
	own := scoreList{of: make([]float32, len(r.docs))}
	for _, s := range r.query.Similar {
		if doc := int32(s.Doc); !r.docs[doc].dead {
			own.add(doc, s.Score+r.boost(doc, namedSimilarity, datedSimilarity))
		}
	}
	scores := r.spread(&own, similarityAround, similarityAround)
	out := similarities{of: func(doc int32) float32 { return scores.of[doc] }, best: r.best(scores, n)}
	out.mean, out.deviation = distribution(scores.touched, out.of)
	return out
}

// byMeaning scores the documents by the vectors of their words. It computes the shares of
// neighbors only for documents that may be among the n best: such a document, or one next to it,
// has a similarity of at least the n-th best score divided by the greatest sum of shares.
func (r *ranker) byMeaning(n int) similarities {
	own := r.cosines()
	out := similarities{of: func(doc int32) float32 { return r.withNeighbors(own, doc) }}
	out.mean, out.deviation = distribution(r.sample(), out.of)
	closest := vectors.NewTop(n)
	for doc, score := range own {
		if floor, full := closest.Floor(); !full || score > floor {
			r.offer(closest, int32(doc), score)
		}
	}
	first := sorted(closest)
	least := float32(0)
	if len(first) == n {
		least = math.MaxFloat32
		for _, s := range first {
			least = min(least, out.of(s.doc))
		}
	}
	best := vectors.NewTop(n)
	for _, doc := range r.around(own, least/(1+2*similarityAround[0])) {
		if score := out.of(doc); score > 0 {
			r.offer(best, doc, score)
		}
	}
	out.best = sorted(best)
	return out
}

// cosines returns the similarity of each document with the query.
func (r *ranker) cosines() []float32 {
	var meaning wordvectors.Vector
	for _, word := range r.plain {
		meaning.Add(wordvectors.Default().Word(word))
	}
	out := make([]float32, len(r.docs))
	r.meanings.Scan(r.meanings.NewQuery(meaning[:]), func(first int, cosines []float32) { copy(out[first:], cosines) })
	if len(r.periods) > 0 || slices.Contains(r.named, true) {
		for doc := range out {
			out[doc] += r.boost(int32(doc), namedSimilarity, datedSimilarity)
		}
	}
	return out
}

// around returns the documents with a positive score of at least a number, and those next to them.
func (r *ranker) around(scores []float32, least float32) (docs []int32) {
	for doc, score := range scores {
		if score < least || score <= 0 || r.docs[doc].dead {
			continue
		}
		docs = append(docs, int32(doc))
		for _, other := range [...]int32{r.docs[doc].previous, r.docs[doc].next} {
			if other >= 0 {
				docs = append(docs, other)
			}
		}
	}
	slices.Sort(docs)
	return slices.Compact(docs)
}

// withNeighbors returns the score of a document with shares of those of its neighbors.
func (r *ranker) withNeighbors(scores []float32, doc int32) float32 {
	d, near := &r.docs[doc], float32(0)
	for _, other := range [...]int32{d.previous, d.next} {
		if other = r.neighbor(doc, other); other >= 0 {
			near += scores[other]
		}
	}
	return scores[doc] + similarityAround[0]*r.damping(doc)*near
}

// sample returns up to maxSample documents, all if there are not more.
func (r *ranker) sample() []int32 {
	docs := make([]int32, 0, maxSample)
	random := rand.New(rand.NewPCG(1, 2)) // the same documents for the same query
	for i := range min(len(r.docs), maxSample) {
		if len(r.docs) > maxSample {
			i = random.IntN(len(r.docs))
		}
		if !r.docs[i].dead {
			docs = append(docs, int32(i))
		}
	}
	return docs
}

// distribution returns the mean and the standard deviation of the scores of documents.
func distribution(docs []int32, score func(doc int32) float32) (mean, deviation float64) {
	var sum, squares float64
	for _, doc := range docs {
		x := float64(score(doc))
		sum, squares = sum+x, squares+x*x
	}
	n := float64(max(len(docs), 1))
	mean = sum / n
	return mean, max(math.Sqrt(max(squares/n-mean*mean, 0)), 1e-6)
}
