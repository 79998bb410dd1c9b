package rerank

import (
	"context"
	"fmt"
)

// Fusion is reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): the score of a
// result is the sum of weight/(K+rank) over the lists that contain it.
type Fusion struct {
	K       int       // greater values reduce the lead of the first places; at least 1
	Weights []float64 // of the lists; nil for equal ones
}

// Rank needs the places of the items in their lists.
func (f Fusion) Rank(_ context.Context, req Request) ([]Choice, Usage, error) {
	choices := make([]Choice, len(req.Items))
	for i, item := range req.Items {
		if len(f.Weights) > 0 && len(f.Weights) != len(item.Ranks) {
			return nil, Usage{}, fmt.Errorf("there are %d weights for %d lists", len(f.Weights), len(item.Ranks))
		}
		choices[i].Index = i
		for list, rank := range item.Ranks {
			if rank == 0 {
				continue
			}
			weight := 1.0
			if len(f.Weights) > 0 {
				weight = f.Weights[list]
			}
			choices[i].Score += weight / float64(f.K+rank)
		}
	}
	return best(choices, req.Limit), Usage{}, nil
}
