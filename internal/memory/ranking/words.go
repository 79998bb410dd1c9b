package ranking

import (
	"math"
	"slices"
)

// Documents of up to this length, with up to this number of a word, have a row of the table of BM25.
const (
	maxTableLength = 159
	maxTableCount  = 8
)

// minShareOfHits is the share of the documents, as its inverse, that may have words of a query whose documents are listed.
const minShareOfHits = 8

// bm25 is what BM25 multiplies the weight of a word by, for how often a document has it and for the words of the document.
type bm25 struct {
	average float64 // words of a document
	table   [maxTableCount + 1][maxTableLength + 1]float64
}

// prepare computes the table for an average length.
func (b *bm25) prepare(average float64) {
	if b.average == average {
		return
	}
	b.average = average
	for length := range maxTableLength + 1 {
		for count := 1; count <= maxTableCount; count++ {
			b.table[count][length] = b.factor(count, length)
		}
	}
}

func (b *bm25) factor(count, length int) float64 {
	norm := saturation * (1 - lengthShare + lengthShare*float64(length)/b.average)
	return float64(count) * (saturation + 1) / (float64(count) + norm)
}

// termMatches are the terms that a word of the query finds.
type termMatches struct{ terms, forms []int32 }

// byWords scores the documents by the words of the query.
func (r *ranker) byWords() *scores {
	r.scratch.own, r.scratch.masks = grow(r.scratch.own, len(r.docs)), grow(r.scratch.masks, len(r.docs))
	s := &scores{ranker: r, own: r.scratch.own, most: math.MaxFloat32, before: wordsBefore, after: wordsAfter}
	r.scratch.bm25.prepare(max(float64(r.total)/float64(max(r.live, 1)), 1))
	found := make([]termMatches, len(r.stems))
	for number, term := range r.stems {
		found[number].terms = r.find(term)
		found[number].forms = r.forms(term, found[number].terms)
	}
	s.hits = r.list(found)
	for number := range found {
		most, bit := 0.0, uint64(1)<<number
		if len(found[number].terms) == 0 {
			most = math.Log(1 + float64(r.live))
		}
		for _, id := range found[number].terms {
			list := r.kept(id)
			with := float64(r.having(list))
			weight := math.Log(1 + (float64(r.live)-with+0.5)/(with+0.5))
			most = max(most, weight)
			s.addTerm(list, weight, bit)
		}
		for _, id := range found[number].forms {
			s.addForm(r.kept(id), float32(formShare*most), bit)
		}
		r.ideal += most
		r.weights = append(r.weights, most)
	}
	if len(r.periods) > 0 || slices.Contains(r.named, true) {
		s.boostAll()
	}
	if r.asksWhen() {
		r.raiseTimes(s.own)
	}
	return s
}

// list returns the documents that have words of the query, in any order; nil if they are many.
func (r *ranker) list(found []termMatches) []int32 {
	total := 0
	for _, f := range found {
		for _, id := range slices.Concat(f.terms, f.forms) {
			total += len(r.kept(id))
		}
	}
	if total*minShareOfHits > len(r.docs) {
		return nil
	}
	marked, hits := r.scratch.marked, slices.Grow(r.scratch.hits[:0], total+1)
	for _, f := range found {
		for _, id := range slices.Concat(f.terms, f.forms) {
			for _, p := range r.kept(id) {
				if doc := p >> countBits; !marked[doc] {
					marked[doc] = true
					hits = append(hits, int32(doc))
				}
			}
		}
	}
	for _, doc := range hits {
		marked[doc] = false
	}
	r.scratch.hits = hits
	return hits[:len(hits):len(hits)]
}

// addTerm adds the scores of the documents that have a term.
func (s *scores) addTerm(list []uint32, weight float64, bit uint64) {
	own, masks, lengths, b := s.own, s.scratch.masks, s.lengths, &s.scratch.bm25
	for _, p := range list {
		doc, count := p>>countBits, p&maxCount
		length := lengths[doc]
		masks[doc] |= bit
		if count <= maxTableCount && length <= maxTableLength {
			own[doc] += float32(weight * b.table[count][length])
		} else {
			own[doc] += float32(weight * b.factor(int(count), int(length)))
		}
	}
}

// addForm adds to the scores of documents that have another form of a word, but not the word.
func (s *scores) addForm(list []uint32, score float32, bit uint64) {
	for _, p := range list {
		if doc := p >> countBits; s.scratch.masks[doc]&bit == 0 {
			s.scratch.masks[doc] |= bit
			s.own[doc] += score
		}
	}
}

// boostAll increases the scores of documents by an author or of a time that the query names.
func (s *scores) boostAll() {
	boost := func(doc int32) {
		s.own[doc] *= (1 + s.boost(doc, namedAuthor, 0)) * (1 + s.boost(doc, 0, mentionedTime))
	}
	if s.hits != nil {
		for _, doc := range s.hits {
			boost(doc)
		}
		return
	}
	for doc, score := range s.own {
		if score > 0 {
			boost(int32(doc))
		}
	}
}

// kept returns the documents that have a term, without the oldest ones if these were removed.
func (r *ranker) kept(id int32) []uint32 {
	list := r.documents(id)
	from, _ := slices.BinarySearch(list, uint32(r.oldest)<<countBits)
	return list[from:]
}

// having returns how many documents of a list were not removed.
func (r *ranker) having(list []uint32) int {
	if r.Dead() == r.oldest {
		return len(list)
	}
	n := 0
	for _, p := range list {
		if !r.dead[p>>countBits] {
			n++
		}
	}
	return n
}
