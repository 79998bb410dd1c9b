package catalogue_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// november is the day on which the catalogue was collected, in the peak hours of DeepSeek.
var november = time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)

// TestCharge_Calls compares calls with sums that were made by hand from the providers'
// price lists.
func TestCharge_Calls(t *testing.T) {
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		provider, name string
		on             time.Time
		tier           string
		usage          catalogue.Usage
		want           float64
	}{
		{"openai", "gpt-4.1", november, "", catalogue.Usage{Input: 1e6, Output: 1e6}, 2 + 8},
		{"openai", "gpt-4.1", november, "default", catalogue.Usage{Input: 1e6, CachedInput: 4e5, Output: 1e5}, 1.2 + 0.2 + 0.8},
		{"openai", "gpt-4.1", november, "batch", catalogue.Usage{Input: 1e6, CachedInput: 1e6}, 1}, // batches have no discount for cached tokens
		{"anthropic", "claude-opus-4-8", november, "", catalogue.Usage{Input: 1e6, Output: 1e6}, 5 + 25},
		{"anthropic", "claude-opus-5-5", november, "", catalogue.Usage{Input: 1e6, CachedInput: 5e5, Writes: catalogue.CacheWrites{Minutes5: 2e5, Hour1: 1e5}, Output: 1e5}, 0.2*4 + 0.5*0.2 + 0.2*5 + 0.1*8 + 2},
		{"anthropic", "claude-opus-5-5", november, "batch", catalogue.Usage{Input: 1e6, Writes: catalogue.CacheWrites{Hour1: 1e6}}, 4}, // half of 8
		{"anthropic", "claude-opus-5-5", november, "fast", catalogue.Usage{Input: 1e6, CachedInput: 5e5, Output: 1e6}, 4 + 0.2 + 40},
		{"anthropic", "claude-opus-5", november, "fast", catalogue.Usage{Input: 1e6, Output: 1e6}, 10 + 50},
		{"anthropic", "claude-opus-5-5", november, "", catalogue.Usage{Input: 1e6, Output: 1e6, Uplifts: []string{"us"}}, 26.4},
		{"google-ai", "gemini-4-argon", november, "", catalogue.Usage{Input: 1e5, Output: 1e5, Reasoning: 5e4}, 0.2 + 1},
		{"google-ai", "gemini-4-argon", december, "", catalogue.Usage{Input: 1e5, Output: 1e5, Reasoning: 5e4}, 0.4 + 2},
		{"google-ai", "gemini-4-argon", december, "batch", catalogue.Usage{Input: 1e5, Output: 1e5}, 0.2 + 1},
		{"google-ai", "gemini-4-argon", december.Add(-time.Nanosecond), "flex", catalogue.Usage{Input: 1e5, Output: 1e5}, 0.1 + 0.5},
		{"deepseek", "deepseek-v4-pro", november, "", catalogue.Usage{Input: 1e6, Output: 1e6}, 1.32 + 3.96},
		{"deepseek", "deepseek-v4-pro", november.Add(3 * time.Hour), "", catalogue.Usage{Input: 1e6, CachedInput: 5e5, Output: 1e6}, 0.33 + 0.011 + 1.98},
		{"deepseek", "deepseek-v4-pro", november.AddDate(0, 0, 1), "", catalogue.Usage{Input: 1e6, Output: 1e6}, 0.66 + 1.98}, // a Saturday
		{"aws-bedrock", "us.anthropic.claude-opus-5-5", november, "", catalogue.Usage{Input: 1e6, CachedInput: 5e5, Output: 1e6}, 2.2 + 0.11 + 22},
		{"cohere", "rerank-v3.5", november, "", catalogue.Usage{Queries: 500}, 1},
		{"openai", "text-embedding-3-small", november, "", catalogue.Usage{Input: 1e6}, 0.02},
	} {
		m, ok := catalogue.Lookup(test.provider, test.name)
		if !ok {
			t.Errorf("%s is unknown", test.name)
			continue
		}
		got := m.Prices.Charge(test.on, test.tier, test.usage)
		if math.Abs(got.Amount-test.want) > 1e-9 || len(got.Assumed) > 0 {
			t.Errorf("%s %s %q %+v = %+v, want %g", test.name, test.on, test.tier, test.usage, got, test.want)
		}
	}
}

// TestCharge_LongContext checks the prices of calls at and above the limit.
func TestCharge_LongContext(t *testing.T) {
	m, _ := catalogue.Lookup("openai", "gpt-6-sol")
	for _, test := range []struct {
		input int
		tier  string
		want  float64 // for a million tokens of input
	}{{272_000, "", 2}, {272_001, "", 4}, {272_001, "batch", 2}, {272_001, "priority", 8}} {
		got := m.Prices.Charge(november, test.tier, catalogue.Usage{Input: test.input})
		if want := test.want * float64(test.input) / 1e6; math.Abs(got.Amount-want) > 1e-9 {
			t.Errorf("%d tokens in tier %q = %g, want %g", test.input, test.tier, got.Amount, want)
		}
	}
}

// TestCharge_Assumed checks that what has no separate price is named.
func TestCharge_Assumed(t *testing.T) {
	m, _ := catalogue.Lookup("anthropic", "claude-opus-5-5")
	got := m.Prices.Charge(november, "priority", catalogue.Usage{Input: 1e6, Writes: catalogue.CacheWrites{Hours12: 1e6}, Uplifts: []string{"mars"}})
	if want := []string{"priority", "cache_write_12h", "mars"}; got.Amount != 8 || !slices.Equal(got.Assumed, want) {
		t.Errorf("charge = %+v, want 8 and %v", got, want)
	}
}
