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
