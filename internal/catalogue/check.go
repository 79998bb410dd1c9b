package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Problem returns the first key of a user's row whose value is wrong, and why; both are
// empty for none.
func (m *Model) Problem() (key, problem string) {
	switch {
	case m.Provider == "":
		return "provider", "a row needs the key provider"
	case m.ID == "":
		return "id", "a row needs the key id"
	case !slices.Contains([]Kind{"", Chat, Embedding, Rerank}, m.Kind):
		return "kind", fmt.Sprintf("kind is chat, embedding or rerank, not %q", m.Kind)
	case !slices.Contains([]Status{"", Active, Deprecated, Retired}, m.Status):
		return "status", fmt.Sprintf("status is active, deprecated or retired, not %q", m.Status)
	case !slices.Contains([]Streaming{"", StreamsNever, StreamsAlways}, m.Streaming):
		return "streaming", fmt.Sprintf("streaming is never or always, not %q", m.Streaming)
	case !isDate(m.Shutdown):
		return "shutdown_date", fmt.Sprintf("shutdown_date must be a date such as 2027-01-31, not %q", m.Shutdown)
	case m.ContextWindow < 0 || m.MaxInput < 0 || m.MaxOutput < 0:
		return "context_window", "context_window, max_input and max_output cannot be negative"
	case !slices.Contains([]string{"", ReasonsNever, ReasonsOptional, ReasonsAlways}, m.Reasoning.Mode):
		return "reasoning", fmt.Sprintf("mode is none, optional or always, not %q", m.Reasoning.Mode)
	case m.Reasoning.Control != "" && !slices.Contains(controls(), m.Reasoning.Control):
		return "reasoning", fmt.Sprintf("control is one of %v, not %q", controls(), m.Reasoning.Control)
	case m.BaseURL != "" && (!strings.HasPrefix(m.BaseURL, "http://") && !strings.HasPrefix(m.BaseURL, "https://") || hostOf(m.BaseURL) == ""):
		return "base_url", fmt.Sprintf("base_url is an http or https address, not %q", m.BaseURL)
	case m.Prices != nil:
		return m.Prices.problem()
	}
	return "", ""
}

// maxPrice is the largest price of a document's `prices` too.
const maxPrice = 1_000_000_000

// problem is Problem of prices.
func (p *Prices) problem() (key, problem string) {
	if p.Input == nil && p.Queries == nil {
		return "prices", "prices need the key input"
	}
	all := []Rates{p.Rates}
	for _, tier := range p.tiers() {
		if *tier != nil {
			all = append(all, **tier)
		}
	}
	for _, l := range p.LongContext {
		if l.Above <= 0 {
			return "prices", "above_input_tokens must be a positive number of tokens"
		}
		all = append(all, l.Rates)
		for _, tier := range l.tiers() {
			if *tier != nil {
				all = append(all, **tier)
			}
		}
	}
	if p.OffPeak != nil {
		all = append(all, p.OffPeak.Rates)
	}
	for _, s := range p.Scheduled {
		if s.From == "" || !isDate(s.From) {
			return "prices", fmt.Sprintf("from must be a date such as 2027-01-31, not %q", s.From)
		}
		all = append(all, s.Rates)
	}
	for i := range all {
		for _, rate := range slices.Concat(all[i].inputs(), all[i].outputs(), []**float64{&all[i].Queries}) {
			if *rate != nil && **rate < 0 {
				return "prices", fmt.Sprintf("a price cannot be negative: %g", **rate)
			}
			if *rate != nil && **rate > maxPrice {
				return "prices", fmt.Sprintf("a price is dollars for a million tokens, at most %d: %g", maxPrice, **rate)
			}
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
