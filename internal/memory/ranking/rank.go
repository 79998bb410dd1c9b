package ranking

import (
	"context"
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
	wordsBefore, wordsAfter = shares{0.5, 0.3, 0.1}, shares{0.4, 0.2, 0.1}
	similarityAround        = shares{0.1}
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

// Rank returns the best documents, the best first; of equal ones the older first. It fails if segments cannot be read.
func (c *Corpus) Rank(ctx context.Context, q Query) ([]Result, error) {
	c.ctx = ctx
	r := &ranker{Corpus: c, query: q, scratch: scratches.Get().(*scratch)}
	r.scratch.marked = grow(r.scratch.marked, len(c.docs))
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
	words, similar := r.byWords(), r.bySimilarity()
	results := r.putNewestFirst(r.combine(words, similar))
	r.scratch.release(words.hits)
	if q.Whole {
		results = c.bestOfMessages(results)
	}
	return results[:min(len(results), q.Limit)], c.takeFailure()
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

// combine returns the documents of both rankings with their scores, the best last: the share of the query's
// words that they have, by weight, and how far their similarity is above the mean of all.
func (r *ranker) combine(words, similar *scores) []scored {
	n, marked, results := max(depth, r.query.Limit), r.scratch.marked, r.scratch.results[:0]
	ideal, highest := max(r.ideal, math.SmallestNonzeroFloat32), similar.deviation*highDeviations
	add := func(doc int32, byWords, bySimilarity float32) {
		cosine := float64(bySimilarity)
		score := wordsWeight * float64(byWords) / ideal
		if r.query.Similar == nil && byWords == 0 && cosine < similar.mean+minDeviations*similar.deviation {
			return // the meanings of words alone say little
		}
		if cosine != 0 {
			score += similarityWeight * (max(cosine-similar.mean, 0)/highest + cosineShare*cosine)
		}
		if score := float32(score); score > 0 && float64(score) >= r.query.MinScore {
			results = append(results, newScored(doc, score))
		}
	}
	byWords, bySimilarity := words.bestOf(n, &r.scratch.best[0]), similar.bestOf(n, &r.scratch.best[1])
	for _, one := range byWords {
		marked[one.doc()] = true
		add(one.doc(), one.score(), similar.of(one.doc()))
	}
	for _, one := range bySimilarity {
		if !marked[one.doc()] {
			add(one.doc(), words.of(one.doc()), one.score())
		}
	}
	for _, one := range byWords {
		marked[one.doc()] = false
	}
	slices.Sort(results)
	r.raiseReplies(results)
	r.scratch.results = results
	return results
}

// has reports whether a document has a term.
func (r *ranker) has(id int32) bool {
	return slices.ContainsFunc(r.kept(id), func(p uint32) bool { return !r.dead[p>>countBits] })
}

// find returns the number of a term; if no document has it, the numbers of terms that it
// begins, that are other forms of it, or of which it is a misspelling.
func (r *ranker) find(term string) []int32 {
	r.learnTerm(term)
	if id, known := r.ids[term]; known && r.has(id) {
		return []int32{id}
	}
	if len(term) < minUnknown {
		return nil
	}
	var variants []string
	add := func(id int32) {
		if t := r.terms[id]; isVariant(t, term) && r.has(id) {
			variants = append(variants, t)
		}
	}
	r.learnPrefix(term[:1])
	for _, id := range r.initials[term[0]] {
		add(id)
	}
	for i := 1; i < len(term); i++ { // words that it ends with
		r.learnTerm(term[i:])
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
	r.learnPrefix(term[:minPrefix])
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
	for i := range r.periods {
		if p := &r.periods[i]; d.seconds >= p.from.Unix() && d.seconds < p.to.Unix() {
			return gain + dated
		}
	}
	return gain
}

// damping is the share of a neighbor's score that a message gets: long ones less.
func (r *ranker) damping(doc int32) float32 {
	return min(1, dampedWords/float32(max(r.wholes[doc], 1)))
}
