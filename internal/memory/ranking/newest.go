package ranking

import (
	"math/bits"
	"slices"
)

const (
	aboutSame    = 0.9 // share of a score that is about the same
	minSameWords = 2
	mostOrdered  = 50  // results that are put in order
	maxNewer     = 2   // statements that come before one that they may have replaced
	replaced     = 0.4 // share of the score of a statement that one that replaces it has, and of the weight of its words
)

// statement is a result.
type statement struct {
	doc, author int32
	seconds     int64
	mask        uint64 // which terms of the query it has
}

// putNewestFirst returns the results, the best of which is the last of those given. Of documents that say the same of different
// times it puts the newest first: what was said later replaces what was said before.
func (r *ranker) putNewestFirst(ranked []scored) []Result {
	results := make([]Result, len(ranked))
	for i, one := range ranked {
		results[len(ranked)-1-i] = Result{int(one.doc()), float64(one.score())}
	}
	last := r.query.Limit
	if r.query.Whole {
		last *= 2 // several passages of a message count once
	}
	last = min(last, mostOrdered, len(results))
	share := aboutSame
	if r.asksForCurrent() {
		share = replaced
	}
	if last > 0 {
		all := r.statements(results, last, share)
		r.order(all, results, last, share)
		for i, s := range all { // the scores stay in order
			results[i].Doc = int(s.doc)
		}
	}
	return results
}

// statements returns the first results: some, and those with at least a share of the score of the last of these.
func (r *ranker) statements(results []Result, last int, share float64) []statement {
	all := r.scratch.statements[:0]
	for i, one := range results {
		if i >= last && one.Score < share*results[last-1].Score {
			break
		}
		d := &r.docs[one.Doc]
		all = append(all, statement{int32(one.Doc), d.author, d.seconds, r.scratch.masks[one.Doc]})
	}
	r.scratch.statements = all
	return all
}

// order puts the newest statement before those that it replaces, for each of the first ones.
func (r *ranker) order(all []statement, results []Result, last int, share float64) {
	current, newer := int32(-1), 0
	if share == replaced {
		current, newer = r.current(all[:last])
	}
	for i := range all[:last] {
		least, same := aboutSame, r.sameWords
		if all[i].doc == current && newer > 0 {
			least, same, newer = share, r.sameStatement, newer-1
		}
		newest := i
		for j := i + 1; j < len(all) && results[j].Score >= least*results[i].Score; j++ {
			if all[j].author == all[newest].author && all[j].seconds > all[newest].seconds && same(&all[i], &all[j]) {
				newest = j
			}
		}
		moved := all[newest]
		copy(all[i+1:newest+1], all[i:newest])
		all[i] = moved
	}
}

// current returns the document that says most of what the query asks for: of the short ones with all its names and numbers
// the one with most of its words, by weight; if the query has none, the first one. newer is how many documents may come before it.
func (r *ranker) current(all []statement) (doc int32, newer int) {
	if r.names == 0 {
		return all[0].doc, 1
	}
	doc, most := int32(-1), 0.0
	for _, s := range all {
		if weight := r.weight(s.mask); s.mask&r.names == r.names && weight > most && r.wholes[s.doc] <= dampedWords {
			doc, most = s.doc, weight
		}
	}
	return doc, maxNewer
}

// sameWords reports whether documents have the same words of the query.
func (r *ranker) sameWords(a, b *statement) bool {
	return a.mask == b.mask && bits.OnesCount64(a.mask) >= minSameWords
}

// sameStatement reports whether two short documents, by an author whom the query names if it names one, have the same
// names and numbers of the query and about the same of its words.
func (r *ranker) sameStatement(a, b *statement) bool {
	if r.sameWords(a, b) {
		return true
	}
	return r.wholes[a.doc] <= dampedWords && r.wholes[b.doc] <= dampedWords && (r.named[a.author] || !slices.Contains(r.named, true)) &&
		a.mask&r.names == b.mask&r.names && bits.OnesCount64(a.mask&b.mask) >= minSameWords && r.weight(a.mask&b.mask) >= replaced*max(r.weight(a.mask), r.weight(b.mask))
}

// weight is the sum of the weights of terms of the query.
func (r *ranker) weight(mask uint64) (sum float64) {
	for ; mask != 0; mask &= mask - 1 {
		sum += r.weights[bits.TrailingZeros64(mask)]
	}
	return sum
}

// asksForCurrent reports whether the query is a question in the present tense, by its words: in English, German
// or Polish.
func (r *ranker) asksForCurrent() bool {
	current := false
	for i, w := range r.plain {
		switch w {
		case "is", "am", "do", "does", "now", "current", "currently", "latest", "still", "ist", "bin", "jetzt", "aktuell", "derzeit", "jest", "teraz", "obecnie":
			current = true
		case "s":
			current = current || i > 0 && slices.Contains([]string{"what", "who", "where", "when", "how"}, r.plain[i-1])
		case "did", "was", "were", "had", "been", "used", "ago", "before", "first", "originally", "previously", "earlier", "last", "yesterday", "wrote", "said",
			"war", "waren", "hatte", "wurde", "fruher", "zuerst", "vorher", "gestern", "byl", "byla", "bylo", "wczesniej", "wczoraj":
			return false
		}
	}
	return current
}
