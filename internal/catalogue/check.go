package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Problem returns the first key of a user's row whose value is wrong, with dots between nested keys and the
// numbers of items of lists, and why; both are empty for none.
func (m *Model) Problem() (key, problem string) {
	switch {
	case m.Provider == "":
		return "provider", "a row needs the key provider"
	case m.ID == "":
		return "id", "a row needs the key id"
	case strings.TrimSpace(m.ID) != m.ID:
		return "id", fmt.Sprintf("id has spaces around it: %q", m.ID)
	case strings.ContainsFunc(m.ID, unicode.IsControl) || strings.ContainsFunc(m.Provider, unicode.IsControl):
		return "id", fmt.Sprintf("provider and id cannot have control characters: %q", m.Provider+"/"+m.ID)
	case !slices.Contains([]Kind{"", Chat, Embedding, Rerank}, m.Kind):
		return "kind", fmt.Sprintf("kind is chat, embedding or rerank, not %q", m.Kind)
	case !slices.Contains([]Status{"", Active, Deprecated, Retired}, m.Status):
		return "status", fmt.Sprintf("status is active, deprecated or retired, not %q", m.Status)
	case !slices.Contains([]Streaming{"", StreamsNever, StreamsAlways}, m.Streaming):
		return "streaming", fmt.Sprintf("streaming is never or always, not %q", m.Streaming)
	case !isDate(m.Shutdown):
		return "shutdown_date", fmt.Sprintf("shutdown_date must be a date such as 2027-01-31, not %q", m.Shutdown)
	case !slices.Contains([]string{"", ReasonsNever, ReasonsOptional, ReasonsAlways}, m.Reasoning.Mode):
		return "reasoning.mode", fmt.Sprintf("mode is none, optional or always, not %q", m.Reasoning.Mode)
	case m.Reasoning.Control != "" && !slices.Contains(controls(), m.Reasoning.Control):
		return "reasoning.control", fmt.Sprintf("control is one of %v, not %q", controls(), m.Reasoning.Control)
	case m.BaseURL != "" && (!strings.HasPrefix(m.BaseURL, "http://") && !strings.HasPrefix(m.BaseURL, "https://") || hostOf(m.BaseURL) == ""):
		return "base_url", fmt.Sprintf("base_url is an http or https address, not %q", m.BaseURL)
	}
	for _, check := range []func() (string, string){m.numberProblem, m.modalityProblem, m.rejectionProblem, m.Prices.problem} {
		if key, problem := check(); key != "" {
			return key, problem
		}
	}
	return "", ""
}

// numberProblem is Problem of counts.
func (m *Model) numberProblem() (key, problem string) {
	for _, n := range []struct {
		key   string
		count int
	}{{"context_window", m.ContextWindow}, {"max_input", m.MaxInput}, {"max_output", m.MaxOutput}, {"dimensions", m.Dimensions}, {"prompt_cache.min_tokens", m.Cache.MinTokens}} {
		if n.count < 0 {
			return n.key, n.key + " cannot be negative"
		}
	}
	return "", ""
}

// modalityProblem is Problem of what the model reads and writes.
func (m *Model) modalityProblem() (key, problem string) {
	known := []string{"text", "image", "pdf", "audio", "video", "embedding"}
	for _, list := range []struct {
		key   string
		words []string
	}{{"input_modalities", m.Input}, {"output_modalities", m.Output}} {
		for i, word := range list.words {
			if !slices.Contains(known, word) {
				return fmt.Sprintf("%s.%d", list.key, i), fmt.Sprintf("%s has %s, not %q", list.key, strings.Join(known, ", "), word)
			}
		}
	}
	return "", ""
}

// rejectionProblem is Problem of refused parameters.
func (m *Model) rejectionProblem() (key, problem string) {
	conditions := []Condition{Always, ReasoningOn, ReasoningOff, ThinkingEnabled, AtEfforts, InToolTurn}
	for i, r := range m.Rejected {
		at := fmt.Sprintf("rejected_parameters.%d", i)
		switch {
		case len(r.Parameters) == 0:
			return at, "a refused parameter needs the key parameters"
		case !slices.Contains(conditions, r.When):
			return at + ".when", fmt.Sprintf("when is one of %v, not %q", conditions, r.When)
		}
	}
	return "", ""
}

// maxPrice is the largest price of a document's `prices` too.
const maxPrice = 1_000_000_000

// placedRates are rates with their place in prices.
type placedRates struct {
	key string
	Rates
}

// problem is Problem of prices.
func (p *Prices) problem() (key, problem string) {
	if p == nil {
		return "", ""
	}
	if p.Input == nil && p.Queries == nil {
		return "prices", "prices need the key input, or per_1000_queries"
	}
	all := p.placed("prices")
	for i, l := range p.LongContext {
		at := fmt.Sprintf("prices.long_context.%d", i)
		if l.Above <= 0 || i > 0 && l.Above <= p.LongContext[i-1].Above {
			return at + ".above_input_tokens", "above_input_tokens must be a positive number of tokens, above those of the item before"
		}
		all = append(all, l.placed(at)...)
	}
	for i, s := range p.Scheduled {
		at := fmt.Sprintf("prices.scheduled.%d", i)
		if s.From == "" || !isDate(s.From) || i > 0 && s.From < p.Scheduled[i-1].From {
			return at + ".from", fmt.Sprintf("from must be a date such as 2027-01-31, not before that of the item before: %q", s.From)
		}
		all = append(all, placedRates{at, s.Rates})
	}
	if p.OffPeak != nil {
		if key, problem := p.OffPeak.problem(); key != "" {
			return key, problem
		}
		all = append(all, placedRates{"prices.off_peak", p.OffPeak.Rates})
	}
	for _, r := range all {
		if key, problem := r.problem(); key != "" {
			return key, problem
		}
	}
	return p.upliftProblem()
}

// placed lists the rates of all tiers.
func (t *TierRates) placed(at string) []placedRates {
	all := []placedRates{{at, t.Rates}}
	for i, tier := range t.tiers() {
		if *tier != nil {
			all = append(all, placedRates{at + "." + tierNames[i], **tier})
		}
	}
	return all
}

// problem is Problem of rates.
func (r placedRates) problem() (key, problem string) {
	names := []string{"input", "cached_input", "cache_write_5m", "cache_write_30m", "cache_write_1h", "cache_write_12h", "audio_input", "image_input",
		"output", "reasoning_output", "per_1000_queries"}
	for i, rate := range slices.Concat(r.inputs(), r.outputs(), []**float64{&r.Queries}) {
		switch {
		case *rate != nil && **rate < 0:
			return r.key + "." + names[i], fmt.Sprintf("a price cannot be negative: %g", **rate)
		case *rate != nil && **rate > maxPrice:
			return r.key + "." + names[i], fmt.Sprintf("a price is dollars for a million tokens, at most %d: %g", maxPrice, **rate)
		}
	}
	return "", ""
}

// problem is Problem of the prices of times of the week.
func (o *OffPeak) problem() (key, problem string) {
	if len(o.Windows) == 0 {
		return "prices.off_peak", "off_peak needs windows"
	}
	for i, w := range o.Windows {
		at := fmt.Sprintf("prices.off_peak.windows.%d", i)
		if len(w.Weekdays) == 0 || slices.ContainsFunc(w.Weekdays, func(day int) bool { return day < 1 || day > 7 }) {
			return at + ".weekdays", "weekdays are numbers from 1, which is Monday, to 7"
		}
		if len(w.Hours) == 0 || slices.ContainsFunc(w.Hours, func(hours string) bool { return !isSpan(hours) }) {
			return at + ".hours_utc", "hours_utc are times such as 22:00-23:30, of one day; 00:00 is also its end"
		}
	}
	return "", ""
}

// isSpan reports whether a text is a part of a day.
func isSpan(text string) bool {
	from, to, found := strings.Cut(text, "-")
	_, errFrom := time.Parse("15:04", from)
	_, errTo := time.Parse("15:04", to)
	return found && len(from) == 5 && len(to) == 5 && errFrom == nil && errTo == nil && (from < to || to == "00:00")
}

// upliftProblem is Problem of the factors of prices.
func (p *Prices) upliftProblem() (key, problem string) {
	known := append([]string{InUS, InEU, Regional, "fedramp"}, tierNames[:]...)
	for _, name := range slices.Sorted(maps.Keys(p.Uplifts)) {
		switch factor := p.Uplifts[name]; {
		case !slices.Contains(known, name):
			return "prices.uplifts." + name, fmt.Sprintf("uplifts has %s, not %q", strings.Join(known, ", "), name)
		case factor <= 0 || factor > 100:
			return "prices.uplifts." + name, fmt.Sprintf("a factor is above 0 and at most 100: %g", factor)
		}
	}
	return "", ""
}

// isDate reports whether a text is empty or a date.
func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return text == "" || err == nil
}

// Agrees reports whether the standard rates are those of other, as far as both are known.
func (p *Prices) Agrees(other Rates) bool {
	own := p.Rates
	for i, rate := range slices.Concat(own.inputs(), own.outputs(), []**float64{&own.Queries}) {
		to := *slices.Concat(other.inputs(), other.outputs(), []**float64{&other.Queries})[i]
		if *rate != nil && to != nil && **rate != *to {
			return false
		}
	}
	return true
}
