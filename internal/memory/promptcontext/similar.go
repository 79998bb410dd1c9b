package promptcontext

import (
	"cmp"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Similar is memory.Comparer: with the vectors of the block retrieval. Messages of the
// window get vectors too, which are ready when they leave it.
func (c *source) Similar(s memory.ContextSession, heads []memory.SessionHead, text string) (all []map[int64]float32, problem string, err error) {
	if c.retrieval == nil || c.retrieval.Embedder == nil || strings.TrimSpace(text) == "" {
		return nil, "", nil
	}
	t := &turnContext{source: c, session: s, problems: map[store.BlockKind]string{}}
	query, problem, err := t.embedQuestion(text)
	if query == nil {
		return nil, problem, err
	}
	for _, l := range heads {
		calls := maxMessages/embedBatchMessages + 1
		stored, why, err := t.completeVectors(t.whole(l), l.Head.State.Last, &calls)
		problem = cmp.Or(problem, why)
		if err != nil {
			return nil, "", err
		}
		if stored == nil {
			return all, problem, nil
		}
		similar, edits := map[int64]float32{}, l.Head.State.Edits()
		for id, score := range stored.vectors.Scores(query) {
			at := ranking.PlaceOf(id)
			if original := edits.Original(at.Seq); edits.Current(original) == at.Seq {
				place := ranking.Place{Seq: original, Part: at.Part}.ID()
				if before, found := similar[place]; !found || score > before {
					similar[place] = score
				}
			}
		}
		all = append(all, similar)
	}
	return all, problem, nil
}
