package catalogue

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// tierName returns the name of the prices of a tier: providers name the standard one, and
// some others, in several ways.
func tierName(tier string) string {
	switch tier = strings.ToLower(tier); tier {
	case "", "default", "standard", "auto", "on_demand", "standard_only", "scale", "reserved":
		return ""
	}
	return tier
}

// inputs lists the rates of what a call reads.
func (r *Rates) inputs() []**float64 {
	return []**float64{&r.Input, &r.CachedInput, &r.CacheWrite5m, &r.CacheWrite30m, &r.CacheWrite1h, &r.CacheWrite12h, &r.AudioInput, &r.ImageInput}
}

// outputs lists the rates of what a call writes.
func (r *Rates) outputs() []**float64 { return []**float64{&r.Output, &r.ReasoningOutput} }

// scaled returns rates with other prices of input and output.
func (r Rates) scaled(input, output float64) Rates {
	for _, rate := range r.inputs() {
		*rate = times(*rate, input)
	}
	for _, rate := range r.outputs() {
		*rate = times(*rate, output)
	}
	return r
}

// times multiplies a rate that is known.
func times(rate *float64, factor float64) *float64 {
	if rate == nil {
		return nil
	}
	product := math.Round(*rate*factor*1e9) / 1e9 // without rounding errors of the factor
	return &product
}

// factor returns by how much a rate changes; 1 if that is not known.
func factor(from, to *float64) float64 {
	if from == nil || to == nil || *from == 0 {
		return 1
	}
	return *to / *from
}

// override sets the rates that are known in other.
func (r *Rates) override(other Rates) {
	for i, rate := range slices.Concat(other.inputs(), other.outputs(), []**float64{&other.Queries}) {
		if *rate != nil {
			*slices.Concat(r.inputs(), r.outputs(), []**float64{&r.Queries})[i] = *rate
		}
	}
}

// tiers lists the rates of tiers, in the order of tierNames.
func (t *TierRates) tiers() []**Rates {
	return []**Rates{&t.Batch, &t.Flex, &t.Priority, &t.Fast, &t.Ultrafast}
}

// tierNames lists the tiers.
var tierNames = [...]string{TierBatch, TierFlex, TierPriority, TierFast, TierUltrafast}

// rebased returns the rates of all tiers where those of the standard tier are other ones.
// Rates that are not given change by the same factors.
func (t TierRates) rebased(to Rates) TierRates {
	input, output := factor(t.Input, to.Input), factor(t.Output, to.Output)
	t.Rates = t.scaled(input, output)
	t.override(to)
	for _, tier := range t.tiers() {
		if *tier != nil {
			rates := (*tier).scaled(input, output)
			*tier = &rates
		}
	}
	return t
}

// at returns the prices of a time.
func (p *Prices) at(on time.Time) Prices {
	at := *p
	day := on.UTC().Format(time.DateOnly)
	for _, s := range p.Scheduled {
		if s.From <= day {
			at = at.rebased(s.Rates)
		}
	}
	if p.OffPeak != nil && slices.ContainsFunc(p.OffPeak.Windows, func(w Window) bool { return w.contains(on.UTC()) }) {
		at = at.rebased(p.OffPeak.Rates)
	}
	return at
}

// rebased returns prices with other standard rates.
func (p Prices) rebased(to Rates) Prices {
	input, output := factor(p.Input, to.Input), factor(p.Output, to.Output)
	p.TierRates = p.TierRates.rebased(to)
	p.LongContext = slices.Clone(p.LongContext)
	for i, l := range p.LongContext {
		p.LongContext[i].TierRates = l.rebased(l.scaled(input, output))
	}
	return p
}

// contains reports whether a time, in UTC, is in the window.
func (w Window) contains(on time.Time) bool {
	weekday := int(on.Weekday()+6)%7 + 1
	clock := on.Format("15:04")
	return slices.Contains(w.Weekdays, weekday) && slices.ContainsFunc(w.Hours, func(hours string) bool {
		from, to, _ := strings.Cut(hours, "-")
		return from <= clock && (clock < to || to == "00:00")
	})
}

// long returns the rates of a call that reads a number of tokens.
func (p Prices) long(input int) TierRates {
	rates := p.TierRates
	for _, l := range p.LongContext {
		if input <= l.Above {
			break
		}
		scaled := p.TierRates.rebased(l.Rates)
		for i, tier := range l.tiers() {
			if *tier != nil {
				*scaled.tiers()[i] = *tier
			}
		}
		rates = scaled
	}
	return rates
}

// tier returns the rates of a tier. A tier without separate rates has the standard ones,
// times the factor in uplifts, and is added to assumed if there is none.
func (t TierRates) tier(name string, uplifts map[string]float64, assumed *[]string) Rates {
	if name == "" {
		return t.Rates
	}
	i := slices.Index(tierNames[:], name)
	if i < 0 || *t.tiers()[i] == nil {
		if by := uplifts[name]; by > 0 {
			return t.scaled(by, by)
		}
		*assumed = append(*assumed, name)
		return t.Rates
	}
	return (*t.tiers()[i]).completed(t.Rates)
}

// completed returns the rates of a tier, completed by the rates of the standard tier.
// Writes to the cache keep their ratio to the input. So do reads if the tier is no
// discount: batches and flex often have none for them.
func (r Rates) completed(standard Rates) Rates {
	input, output := factor(standard.Input, r.Input), factor(standard.Output, r.Output)
	all := standard.scaled(input, output)
	if input < 1 {
		all.CachedInput = nil
	}
	all.override(r)
	return all
}

// cost returns the price of a usage in dollars. Kinds of tokens without a rate are charged
// as tokens that are read or written; those that have other rates in other models are
// added to assumed.
func (r Rates) cost(u Usage, assumed *[]string) float64 {
	rate := func(name string, tokens int, own, others *float64) float64 {
		switch {
		case tokens == 0:
			return 0
		case own != nil:
			return float64(tokens) * *own
		case others == nil:
			*assumed = append(*assumed, name)
			return 0
		}
		return float64(tokens) * *others
	}
	plain := max(0, u.Input-u.CachedInput-u.Writes.Sum()-u.AudioInput-u.ImageInput)
	sum := rate("input", plain, r.Input, nil) +
		rate("cached_input", u.CachedInput, r.CachedInput, r.Input) +
		rate("audio_input", u.AudioInput, r.AudioInput, r.Input) +
		rate("image_input", u.ImageInput, r.ImageInput, r.Input) +
		rate("output", u.Output-u.Reasoning, r.Output, nil) +
		rate("reasoning_output", u.Reasoning, r.ReasoningOutput, r.Output)
	sum += rate("cache_write", u.Writes.Other, cmp.Or(r.CacheWrite5m, r.CacheWrite30m, r.CacheWrite1h, r.CacheWrite12h), r.Input)
	for _, w := range []struct {
		name   string
		tokens int
		own    *float64
	}{{"cache_write_5m", u.Writes.Minutes5, r.CacheWrite5m}, {"cache_write_30m", u.Writes.Minutes30, r.CacheWrite30m}, {"cache_write_1h", u.Writes.Hour1, r.CacheWrite1h}, {"cache_write_12h", u.Writes.Hours12, r.CacheWrite12h}} {
		if w.tokens > 0 && w.own == nil && r.highestWrite() != nil {
			*assumed = append(*assumed, w.name)
		}
		sum += rate(w.name, w.tokens, w.own, cmp.Or(r.highestWrite(), r.Input))
	}
	return sum/1e6 + rate("per_1000_queries", u.Queries, r.Queries, nil)/1e3
}

// highestWrite returns the highest known rate of writes to the cache, nil for none.
func (r Rates) highestWrite() *float64 {
	var highest *float64
	for _, rate := range []*float64{r.CacheWrite5m, r.CacheWrite30m, r.CacheWrite1h, r.CacheWrite12h} {
		if rate != nil && (highest == nil || *rate > *highest) {
			highest = rate
		}
	}
	return highest
}

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
	CacheFirst  bool               `json:"-"` // tokens from the cache have no further discount in batches, which have no rate of their own for them
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

// Charge computes the price of a call at a time, in the tier that the answer named; "" is the standard
// tier: the rates of the day, of the length and of the tier, then each kind of tokens.
func (p *Prices) Charge(on time.Time, tier string, u Usage) Charge {
	var assumed []string
	rates := p.ratesAt(on, tierName(tier), u.Input, &assumed)
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
	return p.ratesAt(on, tierName(tier), input, &assumed)
}

// ratesAt is RatesAt with what has no separate price.
func (p *Prices) ratesAt(on time.Time, tier string, input int, assumed *[]string) Rates {
	all := p.at(on).long(input)
	rates := all.tier(tier, p.Uplifts, assumed)
	if hasOwn := all.Batch != nil && all.Batch.CachedInput != nil; p.CacheFirst && tier == TierBatch && !hasOwn {
		rates.CachedInput = all.CachedInput
	}
	return rates
}
