package provider

import (
	"context"
	"iter"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// withCost adds the cost of calls to their usage, by the prices of the model.
func withCost(m *spec.Model, c model.Chat) model.Chat {
	if prices := m.CallPrices(); prices != nil {
		return &pricedChat{c, prices}
	}
	return c
}

type pricedChat struct {
	model.Chat
	prices *spec.Prices
}

// Generate forwards the events of one call.
func (p *pricedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		for ev, err := range p.Chat.Generate(ctx, req) {
			if ev.Response != nil {
				priced := *ev.Response
				priced.Usage.Cost = cost(p.prices, priced.Usage)
				ev.Response = &priced
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// withEmbeddingCost is withCost for embedding models.
func withEmbeddingCost(m *spec.Model, e model.Embedder) model.Embedder {
	if prices := m.CallPrices(); prices != nil {
		return &pricedEmbedder{e, prices}
	}
	return e
}

type pricedEmbedder struct {
	model.Embedder
	prices *spec.Prices
}

// Embed calls the model.
func (p *pricedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	vectors, usage, err := p.Embedder.Embed(ctx, texts)
	usage.Cost = cost(p.prices, usage)
	return vectors, usage, err
}

func cost(p *spec.Prices, u model.Usage) float64 {
	return p.Cost(spec.TokenCounts{Input: u.Input, Output: u.Output, Cached: u.Cached, CacheWrite: u.CacheWrite})
}
