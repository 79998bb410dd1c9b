package rerank

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/qtype-dev/qtype/model"
)

// Diversity is maximal marginal relevance (Carbonell and Goldstein, 1998): each choice is
// the item with the best balance of being relevant and of being unlike those chosen
// before.
type Diversity struct {
	Lambda float64        // weight of the relevance, between 0 and 1; the rest is that of being different
	Model  model.Embedder // embeds question and texts; nil: the items have vectors, and their scores are the relevance
}

// maxDiverse is the maximum number of items, whose vectors are all compared.
const maxDiverse = 2_000

// Rank returns as many items as are wanted. The score of a choice is its balance.
func (d Diversity) Rank(ctx context.Context, req Request) ([]Choice, Usage, error) {
	if len(req.Items) > maxDiverse {
		return nil, Usage{}, fmt.Errorf("%d results are too many for mmr: the maximum is %d", len(req.Items), maxDiverse)
	}
	relevance, vectors, usage, err := d.measure(ctx, req)
	if err != nil {
		return nil, usage, err
	}
	limit := len(req.Items)
	if req.Limit > 0 {
		limit = min(limit, req.Limit)
	}
	nearest := make([]float64, len(req.Items)) // the similarity to the nearest choice
	chosen := make([]bool, len(req.Items))
	var choices []Choice
	for len(choices) < limit {
		next := Choice{Index: -1}
		for i := range req.Items {
			if chosen[i] {
				continue
			}
			score := d.Lambda*relevance[i] - (1-d.Lambda)*nearest[i]
			if next.Index < 0 || score > next.Score {
				next = Choice{i, score}
			}
		}
		if ctx.Err() != nil {
			return nil, usage, context.Cause(ctx)
		}
		chosen[next.Index] = true
		choices = append(choices, next)
		for i := range req.Items {
			if s := model.Similarity(vectors[i], vectors[next.Index]); len(choices) == 1 || s > nearest[i] {
				nearest[i] = s
			}
		}
	}
	return choices, usage, nil
}

// measure returns the relevance of each item and its vector.
func (d Diversity) measure(ctx context.Context, req Request) ([]float64, [][]float32, Usage, error) {
	var usage Usage
	if d.Model == nil {
		vectors := make([][]float32, len(req.Items))
		for i, item := range req.Items {
			if len(item.Vector) == 0 {
				return nil, nil, usage, errors.New("the results have no vectors: set embedding_model")
			}
			vectors[i] = item.Vector
		}
		return scaled(req.Items), vectors, usage, nil
	}
	texts := make([]string, 0, 1+len(req.Items))
	texts = append(texts, req.Query)
	for _, item := range req.Items {
		texts = append(texts, item.Text)
	}
	vectors, used, err := d.Model.Embed(ctx, texts)
	usage.add(used, used.Model)
	if err != nil {
		return nil, nil, usage, err
	}
	relevance := make([]float64, len(req.Items))
	for i := range relevance {
		relevance[i] = model.Similarity(vectors[0], vectors[i+1])
	}
	return relevance, vectors[1:], usage, nil
}

// scaled returns the scores of a search between 0 and 1.
func scaled(items []Item) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, item := range items {
		low, high = min(low, item.Score), max(high, item.Score)
	}
	all := make([]float64, len(items))
	for i, item := range items {
		all[i] = 1
		if high > low {
			all[i] = (item.Score - low) / (high - low)
		}
	}
	return all
}

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
