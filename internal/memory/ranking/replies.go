package ranking

import "slices"

const (
	mostReplies = 60  // results that can gain
	replyShare  = 0.3 // of its score, what a reply gains
)

// raiseReplies raises the messages that follow a better one with a question, up to that one: they reply to it. The best result
// is the last one. Only what has words of the query gains, and long messages less.
func (r *ranker) raiseReplies(results []scored) {
	first := results[max(len(results)-mostReplies, 0):]
	asked := make(map[int32]float32, len(first)) // scores of documents with questions
	for _, one := range first {
		if r.docs[one.doc()].asks {
			asked[one.doc()] = one.score()
		}
	}
	for i, one := range first {
		doc := one.doc()
		before := r.previous[doc]
		if most := asked[before]; most > one.score() && r.scratch.own[doc] > 0 && r.docs[before].seq != r.docs[doc].seq {
			damping := r.damping(doc)
			first[i] = newScored(doc, min(one.score()*(1+replyShare*damping*damping), most))
		}
	}
	slices.Sort(first)
}
