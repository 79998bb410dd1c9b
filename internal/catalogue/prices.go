package catalogue

import (
	"cmp"
	"time"
)

// Rates are prices in US dollars for a million tokens. A rate that is not known is nil.
type Rates struct {
	Input           *float64 `json:"input,omitempty"`
	CachedInput     *float64 `json:"cached_input,omitempty"`    // read from the prompt cache
	CacheWrite5m    *float64 `json:"cache_write_5m,omitempty"`  // written to the prompt cache for 5 minutes
	CacheWrite30m   *float64 `json:"cache_write_30m,omitempty"` // for 30 minutes
	CacheWrite1h    *float64 `json:"cache_write_1h,omitempty"`  // for an hour
	CacheWrite12h   *float64 `json:"cache_write_12h,omitempty"` // for 12 hours
	AudioInput      *float64 `json:"audio_input,omitempty"`
	ImageInput      *float64 `json:"image_input,omitempty"`
	Output          *float64 `json:"output,omitempty"`
	ReasoningOutput *float64 `json:"reasoning_output,omitempty"`
	Queries         *float64 `json:"per_1000_queries,omitempty"` // dollars for 1,000 queries of a reranker
}

// TierRates are rates, and those of tiers of service.
type TierRates struct {
	Rates
	Batch     *Rates `json:"batch,omitempty"`
	Flex      *Rates `json:"flex,omitempty"`
	Priority  *Rates `json:"priority,omitempty"`
	Fast      *Rates `json:"fast,omitempty"`
	Ultrafast *Rates `json:"ultrafast,omitempty"`
}

// Prices are the prices of a model's calls.
type Prices struct {
	TierRates
	LongContext []LongRates        `json:"long_context,omitempty"` // by rising length
	Scheduled   []DatedRates       `json:"scheduled,omitempty"`    // by rising date
	OffPeak     *OffPeak           `json:"off_peak,omitempty"`
	Uplifts     map[string]float64 `json:"uplifts,omitempty"` // factors, by what causes them: us, eu, regional, fedramp; fast is the factor of the tier
	Note        string             `json:"note,omitempty"`
}

// LongRates are the rates of a call that reads more than Above tokens, for all its tokens.
type LongRates struct {
	Above int `json:"above_input_tokens"`
	TierRates
}

// DatedRates are rates from a day on. Rates that they do not have change by the same factor.
type DatedRates struct {
	From string `json:"from"` // YYYY-MM-DD, from midnight in UTC
	Rates
}

// OffPeak are rates for times of the week.
type OffPeak struct {
	Rates
	Windows []Window `json:"windows"`
}

// Window are hours of days of the week, in UTC.
type Window struct {
	Weekdays []int    `json:"weekdays"`  // 1 is Monday, 7 is Sunday
	Hours    []string `json:"hours_utc"` // HH:MM-HH:MM; 00:00 as the end is midnight
}

// The tiers of service that have separate prices. Other names have the standard rates.
const (
	TierBatch     = "batch"
	TierFlex      = "flex"
	TierPriority  = "priority"
	TierFast      = "fast"
	TierUltrafast = "ultrafast"
)

// The regions that raise prices, in Prices.Uplifts.
const (
	InUS     = "us"
	InEU     = "eu"
	Regional = "regional" // any but the global one
)

// Usage is what a call is charged for.
type Usage struct {
	Input       int // tokens read, with all kinds below
	CachedInput int // of them, read from the prompt cache
	Writes      CacheWrites
	AudioInput  int      // of Input, tokens of audio that are not cached
	ImageInput  int      // of Input, tokens of images that are not cached
	Output      int      // tokens written, with reasoning
	Reasoning   int      // of them, tokens of reasoning
	Queries     int      // calls of a reranker
	Uplifts     []string // what raises the price, by the names of Prices.Uplifts
}

// CacheWrites are tokens written to a prompt cache, by their lifetime.
type CacheWrites struct {
	Minutes5  int `json:"5m,omitempty"`
	Minutes30 int `json:"30m,omitempty"`
	Hour1     int `json:"1h,omitempty"`
	Hours12   int `json:"12h,omitempty"`
	Other     int `json:"other,omitempty"` // of a lifetime that is not reported: the shortest one
}

// Sum is the number of all tokens.
func (w CacheWrites) Sum() int { return w.Minutes5 + w.Minutes30 + w.Hour1 + w.Hours12 + w.Other }

// Charge is the price of a call.
type Charge struct {
	Amount float64 // US dollars
	// Assumed names what was used and has no separate price: the tier, or kinds of tokens.
	// It is charged by the standard rates, with the factors that are known.
	Assumed []string
}

// HasFlex reports whether a model has the tier flex, by its prices. A nil model has not.
func (m *Model) HasFlex() bool { return m != nil && m.Prices != nil && m.Prices.Flex != nil }

// PriceAt returns the price of a call at a time, in the tier that the answer named; "" is
// the standard tier. It is false if the model has no price.
func (m *Model) PriceAt(on time.Time, tier string, u Usage) (Charge, bool) {
	if m.Prices == nil {
		return Charge{}, false
	}
	return m.Prices.Charge(on, tier, u), true
}

// Charge computes the price of a call: the rates of the day, of the length and of the tier,
// then each kind of tokens.
func (p *Prices) Charge(on time.Time, tier string, u Usage) Charge {
	var assumed []string
	rates := p.at(on).long(u.Input).tier(tierName(tier), p.Uplifts, &assumed)
	dollars := rates.cost(u, &assumed)
	for _, name := range u.Uplifts {
		if factor, ok := p.Uplifts[name]; ok {
			dollars *= factor
		} else {
			assumed = append(assumed, name)
		}
	}
	return Charge{Amount: dollars, Assumed: assumed}
}

// Uplift is the factor of the prices in a region; 1 where it costs nothing.
func (p *Prices) Uplift(region string) float64 {
	return cmp.Or(p.Uplifts[region], 1)
}

// RatesAt returns the rates of a call at a time, in a tier, that reads a number of tokens.
func (p *Prices) RatesAt(on time.Time, tier string, input int) Rates {
	var assumed []string
	return p.at(on).long(input).tier(tierName(tier), p.Uplifts, &assumed)
}
