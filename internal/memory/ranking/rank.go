package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The parameters are the same for all shapes of conversations; docs/benchmarks.md has what they were
// measured on.
const (
	saturation  = 1.2 // of BM25, k1
	lengthShare = 0.75

	namedAuthor      = 0.6  // share that a message of a named author gains
	mentionedTime    = 1.0  // share that a message of a mentioned time gains
	namedTime        = 0.25 // share that a short message that names a time gains if the query asks when
	namedSimilarity  = 0.15 // what its similarity gains
	datedSimilarity  = 0.15
	neighborsWithin  = time.Hour // messages further apart are of different conversations
	dampedWords      = 80        // a longer message gets a smaller share of the scores of its neighbors
	depth            = 100       // of the rankings that are combined
	wordsWeight      = 0.6
	similarityWeight = 0.35
	highDeviations   = 5    // standard deviations above the mean that are as much as all words of the query
	minDeviations    = 2    // above the mean that a document without words of the query needs
	cosineShare      = 0.05 // the order of documents below the mean, as in a short conversation
	minPrefix        = 4    // letters of an unknown word that others share
	minMisspelled    = 5    // letters of a word that may be misspelled
	maxEnding        = 3    // letters in which forms of a word differ
	minUnknown       = 3    // letters of an unknown word that is compared with others
	minPart          = 4    // letters of a part of an unknown compound
	maxFormEnding    = 2    // letters in which other forms of a known word differ
	formShare        = 0.5  // of the weight of a word that another form of it has
	maxVariants      = 16   // words that are taken for an unknown one
)

// neighborWeights are the shares of the scores of the messages 1, 2, … before and after.
//
//nolint:gochecknoglobals // constant tables
var (
	wordsBefore, wordsAfter = []float32{0.5, 0.3, 0.1}, []float32{0.4, 0.2, 0.1}
	similarityAround        = []float32{0.1}
)

// Similarity is the similarity of a document's vector with that of the query.
type Similarity struct {
	Doc   int
	Score float32 // cosine
}

// Query is what a ranking is for.
type Query struct {
	Text     string
	Similar  []Similarity       // by an embedding model, in any order, a document once; nil: by the vectors of their words
	Limit    int                // the most results
	MinScore float64            // the least score of a result
	Match    func(doc int) bool // whether a document may be a result; nil: all
	Now      time.Time          // when the question is asked, for "last week"; zero: when the newest document was written
	Whole    bool               // only the best passage of each message
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
	named   []bool // whether the query names an author
	periods []period
	ideal   float64   // about the score of a document with all words of the query
	weights []float64 // of each of the stems
	names   uint64    // which of the stems are names or numbers
	scratch *scratch
}

// Rank returns the best documents, the best first; of equal ones the older first.
func (c *Corpus) Rank(q Query) []Result {
	r := &ranker{Corpus: c, query: q, scratch: scratches.Get().(*scratch)}
	defer scratches.Put(r.scratch)
	r.scratch.marked = zeros(r.scratch.marked, len(c.docs))
	r.plain, r.stems, r.names = queryTerms(q.Text)
	r.named = make([]bool, len(c.authors))
	for i, s := range c.authors {
		r.named[i] = slices.ContainsFunc(s.words, func(w string) bool { return slices.Contains(r.plain, w) })
		for number, term := range r.stems {
			if r.named[i] && slices.ContainsFunc(s.words, func(w string) bool { return stem(w) == term }) {
				r.names &^= 1 << number // authors seldom name themselves
			}
		}
	}
	now := q.Now
	if now.IsZero() {
		now = time.Unix(c.newest, 0)
	}
	r.periods = periods(r.plain, now.UTC(), time.Unix(c.first, 0).UTC(), time.Unix(c.newest, 0).UTC())
	results := r.combine()
	slices.SortFunc(results, func(a, b Result) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Compare(a.Doc, b.Doc)
	})
	r.putNewestFirst(results)
	if q.Whole {
		results = c.bestOfMessages(results)
	}
	return results[:min(len(results), q.Limit)]
}

// bestOfMessages keeps the first result of each message.
func (c *Corpus) bestOfMessages(results []Result) []Result {
	type message struct {
		session int32
		seq     int64
	}
	seen := map[message]bool{}
	return slices.DeleteFunc(results, func(r Result) bool {
		m := message{c.docs[r.Doc].session, c.docs[r.Doc].seq}
		known := seen[m]
		seen[m] = true
		return known
	})
}

// combine returns the documents of both rankings with their scores: the share of the query's
// words that they have, by weight, and how far their similarity is above the mean of all.
func (r *ranker) combine() []Result {
	n := max(depth, 2*r.query.Limit)
	words, similar, marked := r.byWords(), r.bySimilarity(), r.scratch.marked
	results := make([]Result, 0, 2*n)
	add := func(doc int32, byWords, bySimilarity float32) {
		cosine := float64(bySimilarity)
		score := wordsWeight * float64(byWords) / max(r.ideal, math.SmallestNonzeroFloat32)
		if r.query.Similar == nil && byWords == 0 && cosine < similar.mean+minDeviations*similar.deviation {
			return // the meanings of words alone say little
		}
		if cosine != 0 {
			score += similarityWeight * (max(cosine-similar.mean, 0)/(similar.deviation*highDeviations) + cosineShare*cosine)
		}
		if score > 0 && score >= r.query.MinScore {
			results = append(results, Result{int(doc), score})
		}
	}
	byWords, bySimilarity := words.best(n), similar.best(n)
	for _, one := range byWords {
		marked[one.ID] = true
		add(int32(one.ID), one.Score, similar.of(int32(one.ID)))
	}
	for _, one := range bySimilarity {
		if !marked[one.ID] {
			add(int32(one.ID), words.of(int32(one.ID)), one.Score)
		}
	}
	return results
}

// byWords scores the documents by the words of the query.
func (r *ranker) byWords() *scores {
	r.scratch.own, r.scratch.masks = zeros(r.scratch.own, len(r.docs)), zeros(r.scratch.masks, len(r.docs))
	own, masks := r.scratch.own, r.scratch.masks
	for length := range r.scratch.norms {
		r.scratch.norms[length] = r.norm(length)
	}
	for number, term := range r.stems {
		ids := r.find(term)
		most, bit := 0.0, uint64(1)<<number
		if len(ids) == 0 {
			most = math.Log(1 + float64(r.live))
		}
		for _, id := range ids {
			list := r.postings[id]
			with := float64(r.having(list))
			weight := math.Log(1 + (float64(r.live)-with+0.5)/(with+0.5))
			most = max(most, weight)
			for _, p := range list {
				doc, count := int32(p>>countBits), float64(p&maxCount)
				d := &r.docs[doc]
				if d.dead {
					continue
				}
				masks[doc] |= bit
				var norm float64
				if n := int(d.length); n < len(r.scratch.norms) {
					norm = r.scratch.norms[n]
				} else {
					norm = r.norm(n)
				}
				own[doc] += float32(weight * count * (saturation + 1) / (count + norm))
			}
		}
		for _, id := range r.forms(term, ids) {
			for _, p := range r.postings[id] {
				if doc := int32(p >> countBits); !r.docs[doc].dead && masks[doc]&bit == 0 {
					masks[doc] |= bit
					own[doc] += float32(formShare * most)
				}
			}
		}
		r.ideal += most
		r.weights = append(r.weights, most)
	}
	if len(r.periods) > 0 || slices.Contains(r.named, true) {
		for doc, score := range own {
			if score > 0 {
				own[doc] *= (1 + r.boost(int32(doc), namedAuthor, 0)) * (1 + r.boost(int32(doc), 0, mentionedTime))
			}
		}
	}
	if r.asksWhen() {
		r.raiseTimes(own)
	}
	return &scores{ranker: r, own: own, before: wordsBefore, after: wordsAfter}
}

// norm returns how much a document of a number of words needs of a word for half of its weight.
func (r *ranker) norm(length int) float64 {
	average := float64(r.total) / float64(max(r.live, 1))
	return saturation * (1 - lengthShare + lengthShare*float64(length)/max(average, 1))
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

// find returns the number of a term; if no document has it, the numbers of terms that it
// begins, that are other forms of it, or of which it is a misspelling.
func (r *ranker) find(term string) []int32 {
	if id, known := r.ids[term]; known && r.having(r.postings[id]) > 0 {
		return []int32{id}
	}
	if len(term) < minUnknown {
		return nil
	}
	var variants []string
	add := func(id int32) {
		if t := r.terms[id]; isVariant(t, term) && r.having(r.postings[id]) > 0 {
			variants = append(variants, t)
		}
	}
	for _, id := range r.initials[term[0]] {
		add(id)
	}
	for i := 1; i < len(term); i++ { // words that it ends with
		if id, known := r.ids[term[i:]]; known && term[i] != term[0] {
			add(id)
		}
	}
	slices.Sort(variants)
	var ids []int32
	for _, t := range variants[:min(len(variants), maxVariants)] {
		ids = append(ids, r.ids[t])
	}
	return ids
}

// forms returns terms that may be other forms of a word: they differ in a short ending.
func (r *ranker) forms(term string, found []int32) (ids []int32) {
	if len(term) < minPrefix || len(found) != 1 || r.terms[found[0]] != term {
		return nil
	}
	for _, id := range r.prefixes[term[:minPrefix]] {
		other, same := r.terms[id], minPrefix
		for same < len(other) && same < len(term) && other[same] == term[same] {
			same++
		}
		if id != found[0] && same >= len(term)-maxFormEnding && len(other)-same <= maxFormEnding {
			ids = append(ids, id)
		}
	}
	return ids
}

// isVariant reports whether a term may be meant by an unknown one: it has the same beginning but for a short
// ending, it is the beginning or end of a compound, or one letter is missing, added, replaced or swapped with the next.
func isVariant(term, unknown string) bool {
	same := 0
	for same < len(term) && same < len(unknown) && term[same] == unknown[same] {
		same++
	}
	a, b := term[same:], unknown[same:]
	if len(unknown) < minPrefix {
		return b == "" && len(a) == 1
	}
	switch {
	case same > 2 && len(a) == 2 && len(b) == 2 && a[0] == 'e' && a[1] == b[0]:
		return true // Marek, of Marka
	case len(term) >= minPart && (a == "" || strings.HasSuffix(unknown, term)):
		return true // a part of a compound
	}
	if b == "" || same >= max(minPrefix, len(unknown)-maxEnding) && len(a) <= maxEnding && len(b) <= maxEnding {
		return true
	}
	return same > 0 && len(unknown) >= minMisspelled && isMisspelled(a, b)
}

// isMisspelled reports whether texts that begin differently have one letter that is missing, added, replaced or
// swapped with the next.
func isMisspelled(a, b string) bool {
	switch len(a) - len(b) {
	case 1:
		return a[1:] == b
	case -1:
		return a == b[1:]
	case 0:
		return a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	}
	return false
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

// damping is the share of a neighbor's score that a message gets: long ones less.
func (r *ranker) damping(doc int32) float32 {
	return min(1, dampedWords/float32(max(r.docs[doc].whole, 1)))
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
