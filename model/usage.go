package model

import (
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// Usage counts tokens as the provider does.
type Usage struct {
	Input  int // tokens read
	Output int // tokens written
	Cached int // tokens read from the provider's prompt cache, included in Input
	// CacheWrite are the tokens written to the provider's prompt cache, included in Input.
	CacheWrite int
	// CacheWrites are those of CacheWrite whose lifetime the provider reports. The others have
	// its shortest lifetime. Other is not used.
	CacheWrites catalogue.CacheWrites
	Reasoning   int     // tokens of reasoning, included in Output
	AudioInput  int     // tokens of audio, included in Input
	Queries     int     // searches that a reranker is charged for
	Tier        string  // the tier of service that the answer names, in the provider's word; empty for the standard one
	Cost        float64 // by the prices of the model; 0 without prices
	Estimated   bool    // whether Input and Output are estimates, because the server reports no usage
	Model       string  // the id of the fallback that an Embedder called; empty for the model itself
}

// Charge returns the cost of a call that ended at a time; 0 without prices.
func (u Usage) Charge(p *catalogue.Prices, ended time.Time) float64 {
	if p == nil {
		return 0
	}
	writes := u.CacheWrites
	writes.Other = max(0, u.CacheWrite-writes.Sum())
	return p.Charge(ended, u.Tier, catalogue.Usage{
		Input: u.Input, CachedInput: u.Cached, Writes: writes, AudioInput: u.AudioInput, Output: u.Output, Reasoning: u.Reasoning, Queries: u.Queries,
	}).Amount
}

// Add adds the counts of another call, or of another part of the answer. A tier that it
// names replaces the one before.
func (u *Usage) Add(other Usage) {
	u.Input, u.Output, u.Cached, u.CacheWrite = u.Input+other.Input, u.Output+other.Output, u.Cached+other.Cached, u.CacheWrite+other.CacheWrite
	w, o := &u.CacheWrites, other.CacheWrites
	w.Minutes5, w.Minutes30, w.Hour1, w.Hours12 = w.Minutes5+o.Minutes5, w.Minutes30+o.Minutes30, w.Hour1+o.Hour1, w.Hours12+o.Hours12
	u.Reasoning, u.AudioInput, u.Queries, u.Cost = u.Reasoning+other.Reasoning, u.AudioInput+other.AudioInput, u.Queries+other.Queries, u.Cost+other.Cost
	u.Estimated = u.Estimated || other.Estimated
	if other.Tier != "" {
		u.Tier = other.Tier
	}
}
