package source

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// modelsDevProviders are the providers of the catalogue by the names of models.dev, where
// they differ.
var modelsDevProviders = map[string]string{
	"google": "google-ai", "amazon-bedrock": "aws-bedrock", "azure": "azure-openai", "google-vertex-anthropic": "gcp-vertex", "google-vertex": "gcp-vertex",
	"alibaba": "qwen", "llama": "meta",
}

// modelsDevProvider is a provider of api.json.
type modelsDevProvider struct {
	API    string                     `json:"api"`
	Models map[string]json.RawMessage `json:"models"`
}

// modelsDevRow is a model of api.json.
type modelsDevRow struct {
	ID         string           `json:"id"`
	Family     string           `json:"family"`
	Reasoning  bool             `json:"reasoning"`
	Tools      catalogue.Answer `json:"tool_call"`
	Structured catalogue.Answer `json:"structured_output"`
	Status     string           `json:"status"` // alpha, beta, deprecated
	Modalities struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
	Limit struct {
		Context int `json:"context"`
		Input   int `json:"input"`
		Output  int `json:"output"`
	} `json:"limit"`
	Cost *struct {
		modelsDevRates
		Over200k *modelsDevRates `json:"context_over_200k"`
	} `json:"cost"`
}

// modelsDevRates are dollars for a million tokens.
type modelsDevRates struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	Reasoning  *float64 `json:"reasoning"`
	AudioInput *float64 `json:"input_audio"`
}

// rates converts rates.
func (r modelsDevRates) rates() catalogue.Rates {
	return catalogue.Rates{Input: r.Input, Output: r.Output, CachedInput: r.CacheRead, CacheWrite5m: r.CacheWrite, ReasoningOutput: r.Reasoning, AudioInput: r.AudioInput}
}

// readModelsDev reads api.json: providers with their models.
func readModelsDev(top map[string]json.RawMessage) (Rows, error) {
	var rows Rows
	for _, name := range slices.Sorted(maps.Keys(top)) {
		raw := top[name]
		var provider modelsDevProvider
		if json.Unmarshal(raw, &provider) != nil || len(provider.Models) == 0 {
			rows.Skipped = append(rows.Skipped, name+": not a provider with models")
			continue
		}
		if other := modelsDevProviders[name]; other != "" {
			name = other
		}
		if !(*catalogue.Catalogue)(nil).HasProvider(name) && provider.API == "" {
			rows.Skipped = append(rows.Skipped, name+": its address is not known")
			continue
		}
		for id, text := range provider.Models {
			var row modelsDevRow
			if string(text) == "null" || json.Unmarshal(text, &row) != nil {
				rows.Invalid = append(rows.Invalid, name+"/"+id+": not in the expected form")
				continue
			}
			rows.Models = append(rows.Models, row.model(name, id, provider.API))
		}
	}
	slices.Sort(rows.Skipped)
	if len(rows.Models) == 0 && len(rows.Invalid) == 0 {
		return Rows{}, errors.New("the file is none of the formats that are read: rows of this catalogue, models.dev's api.json and LiteLLM's model_prices_and_context_window.json")
	}
	return rows, nil
}

// model converts a row.
func (r modelsDevRow) model(provider, id, address string) catalogue.Model {
	m := catalogue.Model{
		Provider: provider, ID: id, Family: r.Family, Kind: catalogue.Chat, ContextWindow: r.Limit.Context, MaxInput: r.Limit.Input, MaxOutput: r.Limit.Output,
		Input: r.Modalities.Input, Output: r.Modalities.Output, BaseURL: address,
		Tools: catalogue.Tools{FunctionCalling: r.Tools}, Structured: catalogue.Structured{JSONSchema: r.Structured},
		Reasoning: catalogue.Reasoning{Mode: catalogue.ReasonsNever}, Status: catalogue.Active, ThirdParty: []string{"all"}, Sources: []string{"models.dev"},
	}
	if r.Reasoning {
		m.Reasoning.Mode = catalogue.ReasonsOptional
	}
	if r.Status == "deprecated" {
		m.Status = catalogue.Deprecated
	}
	if r.Cost != nil && r.Cost.Input != nil {
		m.Prices = &catalogue.Prices{TierRates: catalogue.TierRates{Rates: r.Cost.rates()}}
		if over := r.Cost.Over200k; over != nil {
			m.Prices.LongContext = []catalogue.LongRates{{Above: 200_000, TierRates: catalogue.TierRates{Rates: over.rates()}}}
		}
	}
	return m
}
