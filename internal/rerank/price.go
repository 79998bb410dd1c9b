package rerank

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// withPrices adds the cost of calls to their usage, if the prices of the model are known.
func withPrices(r Ranker, s spec.ChargedRanker) Ranker {
	if m, charged := s.RankModel(); r != nil && charged && m.Prices != nil {
		return &priced{r, m.Prices}
	}
	return r
}

type priced struct {
	Ranker
	prices *catalogue.Prices
}

// Rank sorts the results.
func (p *priced) Rank(ctx context.Context, req Request) ([]Choice, Usage, error) {
	choices, usage, err := p.Ranker.Rank(ctx, req)
	if err == nil && usage.Queries == 0 && p.prices.Queries != nil { // Bedrock does not report them
		usage.Queries = (len(req.Items) + spec.RankQueryTexts - 1) / spec.RankQueryTexts
	}
	usage.Cost += model.Usage{Input: usage.Input, Queries: usage.Queries}.Charge(p.prices, time.Now())
	return choices, usage, err
}
