package spec

import (
	"strings"
	"sync"
)

// PricesDate is the month of the built-in prices.
const PricesDate = "2025-08"

// ModelPrices are the prices of the models whose names begin with Prefix, in US dollars
// for a million tokens.
type ModelPrices struct {
	Prefix                                 string // lower case
	Input, CachedInput, CacheWrite, Output float64
}

// BuiltinPrices are the list prices of the service of a provider; nil if they are unknown.
// The longest prefix decides; the caller must not change the list.
func BuiltinPrices(provider, name string) *Prices {
	var best *ModelPrices
	name = strings.ToLower(name)
	for _, row := range modelPrices()[provider] {
		rest, ok := strings.CutPrefix(name, row.Prefix)
		if ok && (rest == "" || isRevision(rest)) && (best == nil || len(row.Prefix) > len(best.Prefix)) {
			best = &row
		}
	}
	if best == nil {
		return nil
	}
	return &Prices{Input: best.Input, Output: best.Output, CachedInput: &best.CachedInput, CacheWrite: &best.CacheWrite}
}

// isRevision reports whether the rest of a model's name is a date or latest: other rests
// are names of other models.
func isRevision(rest string) bool {
	return rest == "-latest" || strings.HasPrefix(rest, "-") && strings.Trim(rest, "-0123456789") == ""
}

// CallPrices returns the declared prices, or the built-in ones of a model that the
// provider's own service runs; nil if there are none.
func (m *Model) CallPrices() *Prices {
	if m.Prices != nil {
		return m.Prices
	}
	if m.BaseURL != "" {
		return nil
	}
	return BuiltinPrices(m.Provider, m.Name())
}

// HasBuiltinPrices reports whether the cost of the model is computed by built-in prices.
func (m *Model) HasBuiltinPrices() bool { return m.Prices == nil && m.CallPrices() != nil }

// modelPrices returns the list prices by provider. Prices of long prompts and of batches
// are not in the table.
var modelPrices = sync.OnceValue(func() map[string][]ModelPrices {
	return map[string][]ModelPrices{
		"openai": {
			{"gpt-4o", 2.50, 1.25, 2.50, 10}, {"gpt-4o-mini", 0.15, 0.075, 0.15, 0.60},
			{"gpt-4.1", 2, 0.50, 2, 8}, {"gpt-4.1-mini", 0.40, 0.10, 0.40, 1.60}, {"gpt-4.1-nano", 0.10, 0.025, 0.10, 0.40},
			{"gpt-5", 1.25, 0.125, 1.25, 10}, {"gpt-5-mini", 0.25, 0.025, 0.25, 2}, {"gpt-5-nano", 0.05, 0.005, 0.05, 0.40},
			{"o3", 2, 0.50, 2, 8}, {"o4-mini", 1.10, 0.275, 1.10, 4.40},
			{"text-embedding-3-small", 0.02, 0.02, 0.02, 0}, {"text-embedding-3-large", 0.13, 0.13, 0.13, 0},
		},
		"anthropic": {
			{"claude-opus-4", 15, 1.50, 18.75, 75}, {"claude-opus-4-1", 15, 1.50, 18.75, 75}, {"claude-sonnet-4", 3, 0.30, 3.75, 15},
			{"claude-3-7-sonnet", 3, 0.30, 3.75, 15}, {"claude-3-5-sonnet", 3, 0.30, 3.75, 15}, {"claude-3-5-haiku", 0.80, 0.08, 1, 4},
		},
		"google-ai": {
			{"gemini-2.5-pro", 1.25, 0.31, 1.25, 10}, {"gemini-2.5-flash", 0.30, 0.075, 0.30, 2.50}, {"gemini-2.5-flash-lite", 0.10, 0.025, 0.10, 0.40},
			{"gemini-2.0-flash", 0.10, 0.025, 0.10, 0.40},
		},
		"mistral": {
			{"mistral-large", 2, 2, 2, 6}, {"mistral-medium", 0.40, 0.40, 0.40, 2}, {"mistral-small", 0.10, 0.10, 0.10, 0.30},
		},
	}
})
