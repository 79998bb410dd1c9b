package provider

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// withCost adds the cost of calls to their usage, by the prices of the model.
func withCost(m *spec.Model, c model.Chat, warn func(string)) model.Chat {
	prices := BatchPrices(m.CallPrices())
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
				priced.Usage.Saved = saved(priced.Usage, p.prices, now)
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

// backgroundTier begins the tier of a call in the background, before its window.
const backgroundTier = "background_"

// BatchPrices returns prices with those of batches, and of calls in the background: where those of batches are not known they are
// half of the others, as at all providers that have batches.
func BatchPrices(p *catalogue.Prices) *catalogue.Prices {
	if p == nil {
		return nil
	}
	made := *p
	made.Uplifts = map[string]float64{backgroundTier + "2h": 0.7, backgroundTier + "8h": 0.6} // OpenAI's discounts, of all tokens
	if p.Batch == nil {
		made.Uplifts[catalogue.TierBatch] = 0.5
	}
	maps.Copy(made.Uplifts, p.Uplifts)
	return &made
}

// saved returns what a call in a batch, in the background, or of the tier flex, costs less than another one.
func saved(u model.Usage, p *catalogue.Prices, ended time.Time) float64 {
	if u.Tier != catalogue.TierBatch && u.Tier != catalogue.TierFlex && !strings.HasPrefix(u.Tier, backgroundTier) {
		return 0
	}
	u.Tier = ""
	return u.Charge(p, ended) - u.Cost
}

// withEmbeddingCost is withCost for embedding models.
func withEmbeddingCost(m *spec.Model, e model.Embedder) model.Embedder {
	if prices := BatchPrices(m.CallPrices()); prices != nil {
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
	now := time.Now()
	usage.Cost = usage.Charge(p.prices, now)
	usage.Saved = saved(usage, p.prices, now)
	return vectors, usage, err
}

// maxRateLimitWait is how long one call waits for the provider's rate limit by default.
const maxRateLimitWait = 10 * time.Minute

// withBreaker adds the circuit breaker of the server that a model calls.
func withBreaker(p model.CallPolicy, m *spec.Model, endpoint string, opts Options) model.CallPolicy {
	failures, openFor := 20, 30*time.Second
	if c := m.CircuitBreaker; c != nil {
		failures, openFor = c.Failures, time.Duration(c.OpenFor)
	}
	p.Breaker = opts.Traffic.Breaker(endpoint, failures, openFor, opts.Warn)
	return p
}

// callPolicy returns the declared timeout, retries and rate limit. The defaults of the
// language apply to a model that a Go program made without them. key identifies the
// limiter; models of the same server, name and credential share it.
func callPolicy(m *spec.Model, key string, opts Options) model.CallPolicy {
	p := model.CallPolicy{Timeout: 2 * time.Minute, MaxAttempts: 3, InitialDelay: 500 * time.Millisecond, MaxDelay: 30 * time.Second}
	if m.Timeout > 0 {
		p.Timeout = time.Duration(m.Timeout)
	}
	var limit spec.RateLimit
	if m.RateLimit != nil {
		limit = *m.RateLimit
	}
	p.Limit = opts.Traffic.Limiter(key, limit.RequestsPerMinute, limit.TokensPerMinute)
	if len(m.Fallbacks) == 0 { // otherwise the next model is called instead of a long wait
		p.MaxWait = maxRateLimitWait
		if limit.MaxWait > 0 {
			p.MaxWait = time.Duration(limit.MaxWait)
		}
	}
	if r := m.Retry; r != nil {
		p.MaxAttempts = max(r.MaxAttempts, 1)
		if r.InitialDelay > 0 {
			p.InitialDelay = time.Duration(r.InitialDelay)
		}
		if r.MaxDelay > 0 {
			p.MaxDelay = time.Duration(r.MaxDelay)
		}
	}
	return p
}
