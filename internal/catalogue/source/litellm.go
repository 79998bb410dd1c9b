package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// litellmProviders are the providers of the catalogue by LiteLLM's names. Models of others
// are skipped.
var litellmProviders = map[string]string{
	"openai": "openai", "anthropic": "anthropic", "gemini": "google-ai", "mistral": "mistral", "bedrock": "aws-bedrock", "bedrock_converse": "aws-bedrock",
	"azure": "azure-openai", "vertex_ai-anthropic_models": "gcp-vertex", "vertex_ai-language-models": "gcp-vertex", "deepseek": "deepseek", "xai": "xai",
	"moonshot": "moonshotai", "cohere": "cohere", "cohere_chat": "cohere", "groq": "groq", "voyage": "voyage", "jina_ai": "jina", "dashscope": "qwen",
	"zai": "zai", "minimax": "minimax", "meta_llama": "meta", "ollama": "ollama",
}

// litellmRow is what is read of a model, in addition to its prices.
type litellmRow struct {
	Provider   string           `json:"litellm_provider"`
	Mode       string           `json:"mode"`
	MaxInput   json.RawMessage  `json:"max_input_tokens"` // a number, or a text in some rows
	MaxOutput  json.RawMessage  `json:"max_output_tokens"`
	Vector     int              `json:"output_vector_size"`
	Functions  catalogue.Answer `json:"supports_function_calling"`
	Parallel   catalogue.Answer `json:"supports_parallel_function_calling"`
	ToolChoice catalogue.Answer `json:"supports_tool_choice"`
	Schema     catalogue.Answer `json:"supports_response_schema"`
	Vision     catalogue.Answer `json:"supports_vision"`
	PDF        catalogue.Answer `json:"supports_pdf_input"`
	Audio      catalogue.Answer `json:"supports_audio_input"`
	Reasoning  catalogue.Answer `json:"supports_reasoning"`
	Caching    catalogue.Answer `json:"supports_prompt_caching"`
	Shutdown   string           `json:"deprecation_date"`
}

// looksLikeLiteLLM reports whether the values are models of LiteLLM's file.
func looksLikeLiteLLM(top map[string]json.RawMessage) bool {
	for _, raw := range top {
		var row litellmRow
		if json.Unmarshal(raw, &row) == nil && row.Provider != "" {
			return true
		}
	}
	return false
}

// readLiteLLM reads LiteLLM's file: models by names that may begin with the provider.
func readLiteLLM(top map[string]json.RawMessage) Rows {
	var rows Rows
	for _, name := range slices.Sorted(maps.Keys(top)) {
		raw := top[name]
		var row litellmRow
		var prices map[string]json.RawMessage
		if json.Unmarshal(raw, &row) != nil || json.Unmarshal(raw, &prices) != nil {
			rows.Skipped = append(rows.Skipped, name+": not in the expected form")
			continue
		}
		provider, known := litellmProviders[row.Provider]
		kind, usable := map[string]catalogue.Kind{"chat": catalogue.Chat, "responses": catalogue.Chat, "embedding": catalogue.Embedding, "rerank": catalogue.Rerank}[row.Mode]
		if !known || !usable {
			rows.Skipped = append(rows.Skipped, name+": provider "+row.Provider+", mode "+row.Mode)
			continue
		}
		if provider != "groq" || strings.HasPrefix(name, "groq/") {
			name = strings.TrimPrefix(strings.TrimPrefix(name, row.Provider+"/"), "vertex_ai/")
		}
		if strings.Contains(name, "/") && provider != "groq" {
			rows.Skipped = append(rows.Skipped, name+": prices of a region")
			continue
		}
		m, err := row.model(provider, name, kind, prices)
		if err != nil {
			rows.Invalid = append(rows.Invalid, provider+"/"+name+": "+err.Error())
			continue
		}
		rows.Models = append(rows.Models, m)
	}
	slices.Sort(rows.Skipped)
	return rows
}

// model converts a row. Its error names a value that cannot be read.
func (r *litellmRow) model(provider, name string, kind catalogue.Kind, keys map[string]json.RawMessage) (catalogue.Model, error) {
	input, err := tokens("max_input_tokens", r.MaxInput)
	if err != nil {
		return catalogue.Model{}, err
	}
	output, err := tokens("max_output_tokens", r.MaxOutput)
	if err != nil {
		return catalogue.Model{}, err
	}
	prices, err := litellmPrices(keys)
	if err != nil {
		return catalogue.Model{}, err
	}
	m := catalogue.Model{
		Provider: provider, ID: name, Kind: kind, MaxInput: input, MaxOutput: output, ContextWindow: input,
		Input: []string{"text"}, Output: []string{"text"}, Dimensions: r.Vector,
		Tools:      catalogue.Tools{FunctionCalling: r.Functions, Parallel: r.Parallel, ToolChoice: r.ToolChoice},
		Structured: catalogue.Structured{JSONSchema: r.Schema}, Cache: catalogue.PromptCache{Supported: r.Caching},
		Prices: prices, Status: catalogue.Active, Shutdown: r.Shutdown, ThirdParty: []string{"all"}, Sources: []string{"litellm"},
	}
	for _, input := range []struct {
		name string
		has  catalogue.Answer
	}{{"image", r.Vision}, {"pdf", r.PDF}, {"audio", r.Audio}} {
		if input.has == catalogue.Yes {
			m.Input = append(m.Input, input.name)
		}
	}
	if r.Reasoning == catalogue.Yes {
		m.Reasoning.Mode = catalogue.ReasonsOptional
	}
	if kind == catalogue.Embedding {
		m.Output = []string{"embedding"}
	}
	if key, _ := m.Problem(); key == "shutdown_date" {
		m.Shutdown = "" // some dates are sentences
	}
	return m, nil
}

// maxTokens is the largest number of tokens that is believed.
const maxTokens = 1e12

// tokens reads the number of tokens of a key; 0 for none.
func tokens(key string, raw json.RawMessage) (int, error) {
	value, err := number(key, raw)
	if err != nil || value == nil {
		return 0, err
	}
	if math.Abs(*value) > maxTokens {
		return 0, fmt.Errorf("%s is not a number of tokens: %s", key, raw)
	}
	return int(*value), nil
}

// number reads the number of a key, which may be a text; nil for none.
func number(key string, raw json.RawMessage) (*float64, error) {
	text, value := string(raw), (*float64)(nil)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(raw, &text) != nil || json.Unmarshal([]byte(cmp.Or(text, "null")), &value) != nil {
		return nil, fmt.Errorf("%s is not a number: %s", key, raw)
	}
	return value, nil
}

// litellmPrice is the name of a price: what, above how many thousand tokens, in which tier.
var litellmPrice = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost|cache_creation_input_token_cost_above_1hr|input_cost_per_audio_token|input_cost_per_image_token|output_cost_per_reasoning_token|input_cost_per_query)(?:_above_(\d+)k_tokens)?(?:_(batches|flex|priority))?$`)
})

// litellmPrices reads the prices of a model, nil if it has none.
func litellmPrices(keys map[string]json.RawMessage) (*catalogue.Prices, error) {
	made := &catalogue.Prices{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		parts := litellmPrice().FindStringSubmatch(key)
		if parts == nil {
			continue
		}
		token, err := number(key, keys[key])
		if err != nil {
			return nil, err
		}
		if token == nil { // null is no price
			continue
		}
		tiers := &made.TierRates
		if parts[2] != "" {
			tiers = longRates(made, parts[2])
		}
		setLiteLLM(tierOf(tiers, parts[3]), parts[1], *token)
	}
	if made.Input == nil && made.Queries == nil {
		return nil, nil
	}
	slices.SortFunc(made.LongContext, func(a, b catalogue.LongRates) int { return a.Above - b.Above })
	return made, nil
}

// longRates returns the rates above a number of thousand tokens.
func longRates(p *catalogue.Prices, thousands string) *catalogue.TierRates {
	above, _ := strconv.Atoi(thousands)
	above *= 1000
	i := slices.IndexFunc(p.LongContext, func(l catalogue.LongRates) bool { return l.Above == above })
	if i < 0 {
		p.LongContext = append(p.LongContext, catalogue.LongRates{Above: above})
		i = len(p.LongContext) - 1
	}
	return &p.LongContext[i].TierRates
}

// tierOf returns the rates of a tier of LiteLLM's file.
func tierOf(t *catalogue.TierRates, name string) *catalogue.Rates {
	tier := map[string]**catalogue.Rates{"batches": &t.Batch, "flex": &t.Flex, "priority": &t.Priority}[name]
	if tier == nil {
		return &t.Rates
	}
	if *tier == nil {
		*tier = &catalogue.Rates{}
	}
	return *tier
}

// setLiteLLM sets the rate of a key of LiteLLM's file, which has dollars for one token.
func setLiteLLM(r *catalogue.Rates, key string, token float64) {
	rate := perMillion(token)
	switch key {
	case "input_cost_per_token":
		r.Input = rate
	case "output_cost_per_token":
		r.Output = rate
	case "cache_read_input_token_cost":
		r.CachedInput = rate
	case "cache_creation_input_token_cost":
		r.CacheWrite5m = rate
	case "cache_creation_input_token_cost_above_1hr":
		r.CacheWrite1h = rate
	case "input_cost_per_audio_token":
		r.AudioInput = rate
	case "input_cost_per_image_token":
		r.ImageInput = rate
	case "output_cost_per_reasoning_token":
		r.ReasoningOutput = rate
	case "input_cost_per_query":
		thousand := round(token * 1000)
		r.Queries = &thousand
	}
}

// perMillion converts the price of a token.
func perMillion(token float64) *float64 {
	rate := round(token * 1e6)
	return &rate
}

// round removes rounding errors of a price.
func round(price float64) float64 { return math.Round(price*1e6) / 1e6 }
