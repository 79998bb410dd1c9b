package ranking

import (
	"cmp"
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

// putNewestFirst puts the newest first of documents that say the same of different times: what was said later replaces
// what was said before.
func (r *ranker) putNewestFirst(results []Result) {
	last := r.query.Limit
	if r.query.Whole {
		last *= 2 // several passages of a message count once
	}
	last = min(last, mostOrdered)
	share := aboutSame
	if r.asksForCurrent() {
		share = replaced
	}
	head := results
	if last > 0 && last < len(results) {
		least := share * results[last-1].Score
		end, _ := slices.BinarySearchFunc(results, least, func(one Result, least float64) int { return cmp.Compare(least, one.Score) })
		head = results[:max(end, last)]
	}
	masks := make([]uint64, len(head))
	for i := range head {
		masks[i] = r.scratch.masks[head[i].Doc]
	}
	current, newer := -1, 0
	if share == replaced {
		current, newer = r.statement(head[:min(last, len(head))], masks)
	}
	for i := range head[:min(last, len(head))] {
		least, same := aboutSame, r.sameWords
		if head[i].Doc == current && newer > 0 {
			least, same, newer = share, r.sameStatement, newer-1
		}
		newest := i
		for j := i + 1; j < len(head) && head[j].Score >= least*head[i].Score; j++ {
			a, b := &r.docs[head[j].Doc], &r.docs[head[newest].Doc]
			if a.author == b.author && a.seconds > b.seconds && same(head[i].Doc, head[j].Doc, masks[i], masks[j]) {
				newest = j
			}
		}
		doc, mask := head[newest].Doc, masks[newest]
		for k := newest; k > i; k-- { // the scores stay in order
			head[k].Doc, masks[k] = head[k-1].Doc, masks[k-1]
		}
		head[i].Doc, masks[i] = doc, mask
	}
}

// statement returns the result that says most of what the query asks for: of the short ones with all its names and numbers
// the one with most of its words, by weight; if it has none, the first result. newer is how many results may come before it.
func (r *ranker) statement(results []Result, masks []uint64) (doc, newer int) {
	if r.names == 0 && len(results) > 0 {
		return results[0].Doc, 1
	}
	doc, most := -1, 0.0
	for i := range results {
		if weight := r.weight(masks[i]); masks[i]&r.names == r.names && weight > most && r.docs[results[i].Doc].whole <= dampedWords {
			doc, most = results[i].Doc, weight
		}
	}
	return doc, maxNewer
}

// sameWords reports whether documents have the same words of the query.
func (r *ranker) sameWords(_, _ int, a, b uint64) bool {
	return a == b && bits.OnesCount64(a) >= minSameWords
}

// sameStatement reports whether two short documents, by an author whom the query names if it names one, have the same
// names and numbers of the query and about the same of its words.
func (r *ranker) sameStatement(one, other int, a, b uint64) bool {
	if r.sameWords(one, other, a, b) {
		return true
	}
	author := r.docs[one].author
	return r.docs[one].whole <= dampedWords && r.docs[other].whole <= dampedWords && (r.named[author] || !slices.Contains(r.named, true)) &&
		a&r.names == b&r.names && bits.OnesCount64(a&b) >= minSameWords && r.weight(a&b) >= replaced*max(r.weight(a), r.weight(b))
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
