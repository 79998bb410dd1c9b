package promptcontext

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Similar is memory.Comparer: with the vectors of the block retrieval. Messages of the
// window get vectors too, which are ready when they leave it.
func (c *source) Similar(s memory.ContextSession, heads []memory.SessionHead, text string) (all []map[int64]float32, problem string, err error) {
	if c.retrieval == nil || strings.TrimSpace(text) == "" {
		return nil, "", nil
	}
	t := &turnContext{source: c, session: s, problems: map[store.BlockKind]string{}}
	query, err := c.retrieval.Embedder.Embed(s.Context(), pieces(text)[:1])
	switch {
	case s.Context().Err() != nil:
		return nil, "", context.Cause(s.Context())
	case err != nil || len(query) != 1:
		return nil, t.embedderProblem(err), nil
	}
	for _, l := range heads {
		calls := maxVectors/embedBatchMessages + 1
		of := t.other(l)
		pending, oldest := of.pending, l.Head.State.Last-maxVectors // older ones would not be kept
		of.pending = func(after int64) (evictedMessages, error) { return pending(max(after, oldest)) }
		stored, why, err := t.completeVectors(of, l.Head.State.Last, &calls)
		problem = cmp.Or(problem, why)
		if err != nil {
			return nil, "", err
		}
		if stored == nil {
			return all, problem, nil
		}
		similar := map[int64]float32{}
		for _, m := range stored.vectors.Nearest(query[0], math.MaxInt, func(int64) bool { return true }) {
			similar[m.ID] = m.Score
		}
		all = append(all, similar)
	}
	return all, problem, nil
}
