package provider

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// withCost adds the cost of calls to their usage, by the prices of the model.
func withCost(m *spec.Model, c model.Chat, warn func(string)) model.Chat {
	prices := m.CallPrices()
	if prices == nil {
		return c
	}
	return &pricedChat{Chat: c, prices: prices, region: m.PriceRegion(c.Info().Endpoint), warnOfQueries: sync.OnceFunc(func() {
		if warn != nil {
			warn("model " + m.ID + ": the price of its provider's web searches is not known, so they are not part of the cost; models.yaml can have it as per_1000_queries")
		}
	})}
}

type pricedChat struct {
	model.Chat
	prices        *catalogue.Prices
	region        string // in which it runs
	warnOfQueries func()
}

// Generate forwards the events of one call.
func (p *pricedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		for ev, err := range p.Chat.Generate(ctx, req) {
			if ev.Response != nil {
				priced, now := *ev.Response, time.Now()
				priced.Usage = priced.Usage.In(p.region)
				priced.Usage.Cost = priced.Usage.Charge(p.prices, now)
				if priced.Usage.HasUnpricedQueries(p.prices, now) {
					p.warnOfQueries()
				}
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
	prices *catalogue.Prices
}

// Embed calls the model.
func (p *pricedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	vectors, usage, err := p.Embedder.Embed(ctx, texts)
	usage.Cost = usage.Charge(p.prices, time.Now())
	return vectors, usage, err
}
