package model

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Usage counts tokens as the provider does.
type Usage struct {
	Input  int // tokens read
	Output int // tokens written
	Cached int // tokens read from the provider's prompt cache, included in Input
	// CacheWrite are the tokens written to the provider's prompt cache, included in Input.
	CacheWrite int
	// CacheWrites are the tokens of CacheWrite with a lifetime that the provider reports.
	// The others have its shortest lifetime. Other is not used.
	CacheWrites catalogue.CacheWrites
	Reasoning   int     // tokens of reasoning, included in Output
	AudioInput  int     // tokens of audio that are not cached, included in Input
	Queries     int     // searches that a reranker, or a model with a web search of its provider, is charged for
	Tier        string  // the tier of service that the answer names, in the provider's word; empty for the standard one
	Region      string  // where the model ran, by the names of catalogue.Prices.Uplifts; empty where that costs nothing
	Cost        float64 // by the prices of the model; 0 without prices
	Saved       float64 // what the tier cost less than the standard one, by the same prices
	Estimated   bool    // whether Input and Output are estimates, because the server reports no usage
	Model       string  // the id of the fallback that an Embedder called; empty for the model itself
	// Requests are the usages of the requests that the answer took, whose prices depend on the
	// length of each. It is nil for one request.
	Requests *[]Usage
}

// Charge returns the cost of a call that ended at a time; 0 without prices.
func (u Usage) Charge(p *catalogue.Prices, ended time.Time) float64 {
	if p == nil {
		return 0
	}
	sum := 0.0
	for _, r := range u.each() {
		sum += r.charge(p, ended).Amount
	}
	return sum
}

// HasUnpricedQueries reports whether searches were made whose price is not known. They are not part
// of the cost.
func (u Usage) HasUnpricedQueries(p *catalogue.Prices, ended time.Time) bool {
	return p != nil && u.Queries > 0 && p.RatesAt(ended, u.Tier, 0).Queries == nil
}

// In returns the usage of requests that ran in a region, unless the answer names one.
func (u Usage) In(region string) Usage {
	u.Region = cmp.Or(u.Region, region)
	if u.Requests != nil {
		requests := slices.Clone(*u.Requests)
		for i := range requests {
			requests[i].Region = cmp.Or(requests[i].Region, region)
		}
		u.Requests = &requests
	}
	return u
}

// Reading returns the usage without the tokens that were written.
func (u Usage) Reading() Usage {
	requests := slices.Clone(u.each())
	for i := range requests {
		requests[i].Output, requests[i].Reasoning = 0, 0
	}
	u.Output, u.Reasoning, u.Requests = 0, 0, &requests
	return u
}

// each lists the usages of the requests.
func (u Usage) each() []Usage {
	if u.Requests != nil {
		return *u.Requests
	}
	return []Usage{u}
}

// charge returns the price of one request.
func (u Usage) charge(p *catalogue.Prices, ended time.Time) catalogue.Charge {
	writes := u.CacheWrites
	writes.Other = max(0, u.CacheWrite-writes.Sum())
	used := catalogue.Usage{
		Input: u.Input, CachedInput: u.Cached, Writes: writes, AudioInput: u.AudioInput, Output: u.Output, Reasoning: u.Reasoning, Queries: u.Queries,
	}
	if p.Uplift(u.Region) != 1 { // older models cost the same everywhere
		used.Uplifts = []string{u.Region}
	}
	return p.Charge(ended, u.Tier, used)
}

// Join adds the usage of another request for the same answer.
func (u *Usage) Join(next Usage) {
	requests := slices.Concat(u.each(), next.each())
	u.Add(next)
	u.Requests = &requests
}

// Add adds the counts of another call. A tier or region that it names replaces the one before.
func (u *Usage) Add(other Usage) {
	u.Input, u.Output, u.Cached, u.CacheWrite = u.Input+other.Input, u.Output+other.Output, u.Cached+other.Cached, u.CacheWrite+other.CacheWrite
	w, o := &u.CacheWrites, other.CacheWrites
	w.Minutes5, w.Minutes30, w.Hour1, w.Hours12 = w.Minutes5+o.Minutes5, w.Minutes30+o.Minutes30, w.Hour1+o.Hour1, w.Hours12+o.Hours12
	u.Reasoning, u.AudioInput, u.Queries, u.Cost, u.Saved = u.Reasoning+other.Reasoning, u.AudioInput+other.AudioInput, u.Queries+other.Queries, u.Cost+other.Cost, u.Saved+other.Saved
	u.Estimated, u.Requests = u.Estimated || other.Estimated, nil
	u.Tier, u.Region = cmp.Or(other.Tier, u.Tier), cmp.Or(other.Region, u.Region)
}

// WithEstimates estimates the usage of answers of servers that report none, so that budgets
// and costs count them.
func WithEstimates(m Chat) Chat { return &estimated{m} }

type estimated struct{ Chat }

// Generate forwards the events of one call.
func (e *estimated) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ev, err := range e.Chat.Generate(ctx, req) {
			if r := ev.Response; r != nil && r.Usage.Input+r.Usage.Output == 0 {
				answer := *r
				answer.Usage.Input = countTokens(e.Info(), requestText(req))
				answer.Usage.Output = countTokens(e.Info(), requestText(Request{Messages: []chat.Message{r.Message}}))
				answer.Usage.Estimated = true
				ev.Response = &answer
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// countTokens returns about how many tokens texts have for a model.
func countTokens(info Info, texts []string) int {
	n := 0
	enc, err := tokenizer.For(info.Encoding)
	for _, text := range texts {
		if err == nil {
			n += enc.Count(text)
		} else {
			n += len(text) / 4 // about what the vocabularies give for English text
		}
	}
	return n
}
