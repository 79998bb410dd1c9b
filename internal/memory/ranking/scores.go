package ranking

import (
	"math"
	"slices"
	"sync"
)

// scores are the scores of documents, which get shares of those of their neighbors. Most documents are never asked for.
type scores struct {
	*ranker
	own             []float32 // of each document, 0 for none
	hits            []int32   // the documents with a score of their own, if they are few; else nil
	most            float32   // no score of their own is greater
	before, after   shares    // those of the documents before and after
	mean, deviation float64   // of similarities
}

// reach is how far the neighbors are that a document gets shares of.
const reach = 3

// shares are those of the scores of the documents 1, 2, … before or after.
type shares [reach]float32

// scratch has what a search needs of each document.
type scratch struct {
	own, similar []float32
	masks        []uint64 // which terms of the query it has
	marked       []bool
	hits, near   []int32
	best         [2]top
	results      []scored
	statements   []statement
	bm25         bm25
}

// scratches keeps a search from allocating them. In what is put back, own, masks and marked are zero.
//
//nolint:gochecknoglobals // a pool
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// grow returns n elements of a slice, whose memory is zero if that of the slice is.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// of returns the score of a document.
func (s *scores) of(doc int32) float32 {
	if s.inner[doc] {
		return s.among(doc)
	}
	return s.own[doc] + s.apart(doc)*s.damping(doc)
}

// among returns the score of an inner document.
func (s *scores) among(doc int32) float32 {
	around := (*[2*reach + 1]float32)(s.own[doc-reach:])
	near := s.before[0]*around[reach-1] + s.before[1]*around[reach-2] + s.before[2]*around[reach-3] +
		s.after[0]*around[reach+1] + s.after[1]*around[reach+2] + s.after[2]*around[reach+3]
	if n := s.wholes[doc]; n > dampedWords {
		near *= dampedWords / float32(n)
	}
	return around[reach] + near
}

// apart returns the shares that a document gets from neighbors with any numbers.
func (s *scores) apart(doc int32) (near float32) {
	other := doc
	for _, share := range s.before {
		if other = s.previous[other]; other < 0 || share == 0 {
			break
		}
		near += share * s.own[other]
	}
	other = doc
	for _, share := range s.after {
		if other = s.next[other]; other < 0 || share == 0 {
			break
		}
		near += share * s.own[other]
	}
	return near
}

// bestOf returns the n documents with the highest scores, in any order. It computes the shares of neighbors only for
// documents that may be among them.
func (s *scores) bestOf(n int, best *top) []scored {
	shares := float32(0)
	for i := range s.before {
		shares += s.before[i] + s.after[i]
	}
	best.reset(n)
	if s.hits != nil {
		s.bestOfHits(best, shares)
		return best.all()
	}
	gain := shares * s.most // the most that neighbors add
	for doc := int32(s.oldest); int(doc) < len(s.own); doc++ {
		score := s.own[doc]
		if score+gain < best.floor {
			continue
		}
		if s.inner[doc] {
			score = s.among(doc)
		} else {
			score = s.of(doc)
		}
		if score > 0 && score >= best.floor && s.mayMatch(doc) {
			best.offer(doc, score)
		}
	}
	return best.all()
}

// bestOfHits finds the best documents around those that are listed. One of the best, or one near it, has a score of its
// own of at least the n-th best divided by 1 and the sum of shares.
func (s *scores) bestOfHits(best *top, shares float32) {
	for _, doc := range s.hits {
		if score := s.own[doc]; score >= best.floor && s.mayMatch(doc) {
			best.offer(doc, score)
		}
	}
	least := float32(0)
	if own := best.all(); len(own) == best.n {
		least = slices.Min(own).score() / (1 + shares) * 0.999 // of rounding
	}
	best.reset(best.n)
	for _, doc := range s.around(s.hits, least) {
		if score := s.of(doc); score > 0 && score >= best.floor && s.mayMatch(doc) {
			best.offer(doc, score)
		}
	}
}

// around returns the documents with at least a score of their own, and those that get a share of it, each once.
func (s *scores) around(hits []int32, least float32) []int32 {
	marked, docs := s.scratch.marked, s.scratch.near[:0]
	add := func(doc int32) {
		if !marked[doc] {
			marked[doc] = true
			docs = append(docs, doc)
		}
	}
	for _, doc := range hits {
		if s.own[doc] < least {
			continue
		}
		add(doc)
		other := doc
		for range s.after { // these are before it
			if other = s.previous[other]; other < 0 {
				break
			}
			add(other)
		}
		other = doc
		for range s.before {
			if other = s.next[other]; other < 0 {
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

// mayMatch reports whether a document may be a result.
func (r *ranker) mayMatch(doc int32) bool {
	return !r.dead[doc] && (r.query.Match == nil || r.query.Match(int(doc)))
}

// scored is a document with a positive score, as a number: the greater, the better. Of equal scores that of the older document is better.
type scored uint64

func newScored(doc int32, score float32) scored {
	return scored(math.Float32bits(score))<<32 | scored(^uint32(doc))
}

func (s scored) doc() int32     { return int32(^uint32(s)) }
func (s scored) score() float32 { return math.Float32frombits(uint32(s >> 32)) }

// top keeps the n best of the documents that it is offered.
type top struct {
	n     int
	floor float32 // a lower score is not among the best
	list  []scored
}

func (t *top) reset(n int) { t.n, t.floor, t.list = n, 0, t.list[:0] }

func (t *top) offer(doc int32, score float32) {
	t.list = append(t.list, newScored(doc, score))
	if len(t.list) >= 2*t.n {
		t.floor = t.all()[t.n-1].score() // the worst of them
	}
}

// all returns the best in any order. If some were left out, the last one is the worst.
func (t *top) all() []scored {
	if len(t.list) > t.n {
		selectGreatest(t.list, t.n)
		t.list = t.list[:t.n]
	}
	return t.list
}

// selectGreatest moves the n greatest elements to the front, the least of them to the end of these.
func selectGreatest(list []scored, n int) {
	for from, to := 0, len(list); to-from > 1; {
		pivot := list[from+(to-from)/2]
		i, j := from, to-1
		for i <= j {
			for list[i] > pivot {
				i++
			}
			for list[j] < pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n-1 <= j:
			to = j + 1
		case n-1 >= i:
			from = i
		default:
			return
		}
	}
}

// release makes what a search used zero again.
func (s *scratch) release(hits []int32) {
	if hits == nil {
		clear(s.own)
		clear(s.masks)
	}
	for _, doc := range hits {
		s.own[doc], s.masks[doc] = 0, 0
	}
	scratches.Put(s)
}
