package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The parameters were chosen on two conversations and measured on three others; see
// docs/benchmarks.md.
const (
	saturation  = 1.2 // of BM25, k1
	lengthShare = 0.75

	namedAuthor      = 0.6  // share that a message of a named author gains
	mentionedTime    = 1.0  // share that a message of a mentioned time gains
	namedSimilarity  = 0.15 // what its similarity gains
	datedSimilarity  = 0.15
	neighborsWithin  = time.Hour // messages further apart are of different conversations
	depth            = 100       // of the rankings that are combined
	rankConstant     = 10
	wordsWeight      = 2
	similarityWeight = 1
	minPrefix        = 4  // letters of an unknown word that may begin others
	maxVariants      = 16 // words that begin with it
)

// neighborWeights are the shares of the scores of the messages 1, 2, … before and after.
//
//nolint:gochecknoglobals // constant tables
var (
	wordsBefore, wordsAfter           = []float32{0.5, 0.3, 0.1}, []float32{0.4, 0.2, 0.1}
	similarityBefore, similarityAfter = []float32{0.3}, []float32{0.3}
)

// Similarity is the similarity of a document's vector with that of the query.
type Similarity struct {
	Doc   int
	Score float32 // cosine
}

// Query is what a ranking is for.
type Query struct {
	Text    string
	Similar []Similarity       // in any order, a document once; nil without vectors
	Limit   int                // the most results
	Match   func(doc int) bool // whether a document may be a result; nil: all
}

// Result is a found document.
type Result struct {
	Doc   int
	Score float64 // greater is better; comparable within one ranking
}

// ranker is one search.
type ranker struct {
	*Corpus
	query   Query
	plain   []string
	stems   []string
	named   []bool // whether the query names a author
	periods []period
}

// Rank returns the best documents, the best first; of equal ones the older first.
func (c *Corpus) Rank(q Query) []Result {
	r := &ranker{Corpus: c, query: q}
	r.plain, r.stems = queryTerms(q.Text)
	r.named = make([]bool, len(c.authors))
	for i, s := range c.authors {
		r.named[i] = slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(r.plain, w) })
	}
	r.periods = periods(r.plain, time.Unix(c.first, 0).UTC(), time.Unix(c.newest, 0).UTC())
	fused := map[int32]float64{}
	add := func(ranking []scored, weight float64) {
		for rank, s := range ranking {
			fused[s.doc] += weight / float64(rankConstant+rank+1)
		}
	}
	n := max(depth, 2*q.Limit)
	add(r.byWords(n), wordsWeight)
	add(r.bySimilarity(n), similarityWeight)
	results := make([]Result, 0, len(fused))
	for doc, score := range fused {
		results = append(results, Result{int(doc), score})
	}
	slices.SortFunc(results, func(a, b Result) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc)) })
	return results[:min(len(results), q.Limit)]
}

// scored is a document with a score.
type scored struct {
	doc   int32
	score float32
}

// byWords ranks the documents by the words of the query.
func (r *ranker) byWords(n int) []scored {
	scores := scoreList{of: make([]float32, len(r.docs))}
	average := float64(r.total) / float64(max(r.live, 1))
	for _, term := range r.stems {
		for _, id := range r.find(term) {
			list := r.postings[id]
			having := float64(r.having(list))
			weight := math.Log(1 + (float64(r.live)-having+0.5)/(having+0.5))
			for _, p := range list {
				doc, count := int32(p>>countBits), float64(p&maxCount)
				if r.docs[doc].dead {
					continue
				}
				norm := saturation * (1 - lengthShare + lengthShare*float64(r.docs[doc].length)/max(average, 1))
				scores.add(doc, float32(weight*count*(saturation+1)/(count+norm)))
			}
		}
	}
	if len(r.periods) > 0 || slices.Contains(r.named, true) {
		for _, doc := range scores.touched {
			scores.of[doc] *= 1 + r.boost(doc, namedAuthor, 0)
			scores.of[doc] *= 1 + r.boost(doc, 0, mentionedTime)
		}
	}
	return r.best(r.spread(&scores, wordsBefore, wordsAfter), n)
}

// having returns how many documents have a term.
func (r *ranker) having(list []uint32) int {
	if r.Dead() == 0 {
		return len(list)
	}
	n := 0
	for _, p := range list {
		if !r.docs[p>>countBits].dead {
			n++
		}
	}
	return n
}

// find returns the number of a term; if no document has it, the numbers of terms that
// begin with it.
func (r *ranker) find(term string) []int32 {
	if id, known := r.ids[term]; known && r.having(r.postings[id]) > 0 {
		return []int32{id}
	}
	if len(term) < minPrefix {
		return nil
	}
	var variants []string
	for t := range r.ids {
		if strings.HasPrefix(t, term) && r.having(r.postings[r.ids[t]]) > 0 {
			variants = append(variants, t)
		}
	}
	slices.Sort(variants)
	var ids []int32
	for _, t := range variants[:min(len(variants), maxVariants)] {
		ids = append(ids, r.ids[t])
	}
	return ids
}

// bySimilarity ranks the documents by their vectors.
func (r *ranker) bySimilarity(n int) []scored {
	scores := scoreList{of: make([]float32, len(r.docs))}
	for _, s := range r.query.Similar {
		if doc := int32(s.Doc); !r.docs[doc].dead {
			scores.add(doc, s.Score+r.boost(doc, namedSimilarity, datedSimilarity))
		}
	}
	return r.best(r.spread(&scores, similarityBefore, similarityAfter), n)
}

// boost returns what a document gains if the query names its author or its time.
func (r *ranker) boost(doc int32, named, dated float32) (gain float32) {
	d := &r.docs[doc]
	if r.named[d.author] {
		gain += named
	}
	at := time.Unix(d.seconds, 0)
	if slices.ContainsFunc(r.periods, func(p period) bool { return !at.Before(p.from) && at.Before(p.to) }) {
		gain += dated
	}
	return gain
}

// scoreList has the scores of documents, and which of them have one.
type scoreList struct {
	of      []float32
	touched []int32
}

func (s *scoreList) add(doc int32, score float32) {
	if s.of[doc] == 0 {
		s.touched = append(s.touched, doc)
	}
	s.of[doc] += score
}

// spread adds shares of the scores of the messages before and after.
func (r *ranker) spread(from *scoreList, before, after []float32) *scoreList {
	to := &scoreList{of: make([]float32, len(r.docs))}
	slices.Sort(from.touched) // sums do not depend on the order of the terms
	for _, doc := range from.touched {
		score := from.of[doc]
		to.add(doc, score)
		near := doc
		for _, share := range before { // doc is a message before another one
			if near = r.neighbor(near, r.docs[near].next); near < 0 {
				break
			}
			to.add(near, share*score)
		}
		near = doc
		for _, share := range after {
			if near = r.neighbor(near, r.docs[near].previous); near < 0 {
				break
			}
			to.add(near, share*score)
		}
	}
	return to
}

// neighbor returns a document if it belongs to the same conversation as doc, else -1.
func (r *ranker) neighbor(doc, other int32) int32 {
	if other < 0 {
		return -1
	}
	apart := r.docs[doc].seconds - r.docs[other].seconds
	if max(apart, -apart) > int64(neighborsWithin/time.Second) {
		return -1
	}
	return other
}

// best returns the n documents with the highest scores.
func (r *ranker) best(scores *scoreList, n int) []scored {
	list := make([]scored, 0, len(scores.touched))
	for _, doc := range scores.touched {
		if score := scores.of[doc]; score > 0 && !r.docs[doc].dead && (r.query.Match == nil || r.query.Match(int(doc))) {
			list = append(list, scored{doc, score})
		}
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc)) })
	return list[:min(len(list), n)]
}
