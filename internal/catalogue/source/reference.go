package source

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// referenceRow is a row of the reference list. Its prose and its many shapes become fields
// of catalogue.Model. Unknown keys are errors, so that nothing is lost.
type referenceRow struct {
	Provider     string                       `json:"provider"`
	ID           string                       `json:"id"`
	Aliases      []string                     `json:"aliases"`
	Snapshots    []string                     `json:"snapshots"`
	Family       string                       `json:"family"`
	Kind         string                       `json:"kind"`
	Window       int                          `json:"context_window"`
	MaxInput     int                          `json:"max_input"`
	MaxOutput    int                          `json:"max_output"`
	Input        []string                     `json:"input_modalities"`
	Output       []string                     `json:"output_modalities"`
	Dimensions   int                          `json:"dimensions"`
	Prices       *referencePrices             `json:"prices"`
	Reasoning    referenceReasoning           `json:"reasoning"`
	Rejected     []referenceRejection         `json:"rejected_parameters"`
	Structured   catalogue.Structured         `json:"structured_output"`
	Tools        referenceTools               `json:"tools"`
	Cache        referenceCache               `json:"prompt_cache"`
	Endpoints    []string                     `json:"endpoints"`
	Profiles     map[string]catalogue.Profile `json:"inference_profile_prefixes"`
	PlainID      catalogue.Answer             `json:"plain_id_listed"`
	BaseURL      string                       `json:"base_url"`
	Status       catalogue.Status             `json:"status"`
	Shutdown     string                       `json:"shutdown_date"`
	Replacement  string                       `json:"replacement"`
	Note         string                       `json:"note"`
	Disagreement []string                     `json:"disagreement"`
	ThirdParty   []string                     `json:"third_party"`
	Sources      []referenceSource            `json:"sources"`
}

// referenceSource is where facts are from.
type referenceSource struct {
	URL        string `json:"url"`
	Seen       string `json:"seen"`
	ThirdParty bool   `json:"third_party"`
	Facts      string `json:"facts"`
	Note       string `json:"note"`
}

// referenceTools has a text where tool_choice is limited.
type referenceTools struct {
	FunctionCalling catalogue.Answer `json:"function_calling"`
	Parallel        catalogue.Answer `json:"parallel"`
	ToolChoice      json.RawMessage  `json:"tool_choice"`
}

// referenceCache has a fraction as the number of tokens in some rows.
type referenceCache struct {
	Supported   catalogue.Answer `json:"supported"`
	MinTokens   float64          `json:"min_tokens"`
	Breakpoints catalogue.Answer `json:"breakpoints"`
	Lifetimes   []string         `json:"ttl"`
}

// referencePrices has raw forms of surcharges and of off-peak prices.
type referencePrices struct {
	catalogue.TierRates
	Currency    string                     `json:"currency"`
	Unit        string                     `json:"unit"`
	LongContext []catalogue.LongRates      `json:"long_context"`
	Scheduled   []catalogue.DatedRates     `json:"scheduled"`
	Note        string                     `json:"note"`
	Uplifts     map[string]json.RawMessage `json:"uplifts"`
	OffPeak     *struct {
		Cached  float64 `json:"cache_read_input_token_cost"` // dollars for one token
		Input   float64 `json:"input_cost_per_token"`
		Output  float64 `json:"output_cost_per_token"`
		Windows []struct {
			Hours    json.RawMessage `json:"hours_utc"` // a text or a list
			Weekdays []int           `json:"weekdays"`
		} `json:"windows"`
	} `json:"off_peak_raw"`
}

// readReference reads the reference list.
func readReference(text []byte) (Rows, error) {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	var list []referenceRow
	if err := dec.Decode(&list); err != nil {
		return Rows{}, fmt.Errorf("the list has other values than rows: %s", plain(err))
	}
	var rows Rows
	for _, r := range list {
		if r.Kind == "base_url" {
			rows.Servers = append(rows.Servers, r.server())
			continue
		}
		m, err := r.model()
		if err != nil {
			return Rows{}, fmt.Errorf("%s/%s: %w", r.Provider, r.ID, err)
		}
		rows.Models = append(rows.Models, m)
	}
	return rows, nil
}

// server converts a row of a host. An address may name a second one in brackets.
func (r *referenceRow) server() catalogue.Server {
	address, rest, second := strings.Cut(r.BaseURL, " (Anthropic-compatible: ")
	s := catalogue.Server{Provider: providerName(r.Provider), BaseURL: address, Sources: r.sources()}
	if second {
		s.AnthropicURL = address + strings.TrimSuffix(rest, ")")
	}
	return s
}

// providerName is the name of a provider in documents.
func providerName(name string) string {
	if name == "google" {
		return "google-ai"
	}
	return name
}

// model converts a row of a model.
func (r *referenceRow) model() (catalogue.Model, error) {
	prices, err := r.Prices.prices()
	if err != nil {
		return catalogue.Model{}, err
	}
	rejected, err := r.rejections()
	if err != nil {
		return catalogue.Model{}, err
	}
	reasoning, err := r.Reasoning.reasoning(r.Provider)
	if err != nil {
		return catalogue.Model{}, err
	}
	tools, err := r.Tools.tools()
	m := catalogue.Model{
		Provider: providerName(r.Provider), ID: r.ID, Aliases: r.Aliases, Snapshots: r.Snapshots, Family: r.Family, Kind: catalogue.Kind(r.Kind),
		ContextWindow: r.Window, MaxInput: r.MaxInput, MaxOutput: r.MaxOutput, Input: r.Input, Output: r.Output, Dimensions: r.Dimensions,
		Prices: prices, Reasoning: reasoning, Rejected: rejected, Structured: r.Structured, Tools: tools,
		Cache:     catalogue.PromptCache{Supported: r.Cache.Supported, MinTokens: int(r.Cache.MinTokens), Breakpoints: r.Cache.Breakpoints, Lifetimes: r.Cache.Lifetimes},
		Endpoints: r.Endpoints, Profiles: r.Profiles, PlainID: r.PlainID, BaseURL: r.BaseURL,
		Status: r.Status, Shutdown: r.Shutdown, Replacement: r.Replacement[strings.LastIndexByte(r.Replacement, '/')+1:],
		Redirected: strings.Contains(r.Note, "answers these names with"), Note: r.Note, Disagreement: r.Disagreement, ThirdParty: r.ThirdParty, Sources: r.sources(),
	}
	addClientFacts(&m)
	return m, err
}

// tools converts what a model can do with tools.
func (t referenceTools) tools() (catalogue.Tools, error) {
	tools := catalogue.Tools{FunctionCalling: t.FunctionCalling, Parallel: t.Parallel}
	switch text := string(t.ToolChoice); text {
	case "":
	case `"auto and none only"`:
		tools.ToolChoice, tools.ToolChoices = catalogue.Yes, []string{"auto", "none"}
	default:
		if err := json.Unmarshal(t.ToolChoice, &tools.ToolChoice); err != nil {
			return tools, fmt.Errorf("tool_choice: %w", err)
		}
	}
	return tools, nil
}

// sources writes sources as short texts: the address without its scheme, the facts and the
// day. A trailing * marks others than the provider.
func (r *referenceRow) sources() []string {
	list := make([]string, len(r.Sources))
	for i, s := range r.Sources {
		text := strings.TrimPrefix(s.URL, "https://")
		if rest, ok := strings.CutPrefix(text, "pypi.org/project/"); ok {
			text = strings.Replace(rest, "/", " ", 1)
			text = strings.Replace(text, "/", "", 1)
		}
		if s.ThirdParty {
			text += "*"
		}
		if s.Facts != "" {
			text += ": " + s.Facts
		}
		if s.Note != "" {
			text += " [" + strings.TrimPrefix(s.Note, "page that LiteLLM names as its source; ") + "]"
		}
		list[i] = text
	}
	return list
}

// prices converts prices.
func (p *referencePrices) prices() (*catalogue.Prices, error) {
	if p == nil {
		return nil, nil
	}
	if p.Currency != "USD" || p.Unit != "1M tokens" {
		return nil, fmt.Errorf("prices are in %s for %s", p.Currency, p.Unit)
	}
	made := &catalogue.Prices{TierRates: p.TierRates, LongContext: p.LongContext, Scheduled: p.Scheduled, Note: p.Note}
	slices.SortFunc(made.LongContext, func(a, b catalogue.LongRates) int { return a.Above - b.Above })
	slices.SortFunc(made.Scheduled, func(a, b catalogue.DatedRates) int { return strings.Compare(a.From, b.From) })
	var err error
	if made.Uplifts, err = uplifts(p.Uplifts); err != nil {
		return nil, err
	}
	if p.OffPeak == nil {
		return made, nil
	}
	made.OffPeak = &catalogue.OffPeak{Rates: catalogue.Rates{Input: perMillion(p.OffPeak.Input), CachedInput: perMillion(p.OffPeak.Cached), Output: perMillion(p.OffPeak.Output)}}
	for _, w := range p.OffPeak.Windows {
		hours := []string{}
		if json.Unmarshal(w.Hours, &hours) != nil {
			hours = []string{strings.Trim(string(w.Hours), `"`)}
		}
		made.OffPeak.Windows = append(made.OffPeak.Windows, catalogue.Window{Weekdays: w.Weekdays, Hours: hours})
	}
	return made, nil
}

// uplifts converts surcharges: their names have several forms, and one is nested.
func uplifts(raw map[string]json.RawMessage) (map[string]float64, error) {
	names := map[string]string{
		"fedramp_uplift_multiplier": "fedramp", "regional_endpoint_uplift_multiplier": "regional",
		"regional_processing_uplift_multiplier_eu": "eu", "regional_processing_uplift_multiplier_us": "us", "us": "us", "fast": catalogue.TierFast,
	}
	var made map[string]float64
	for name, value := range raw {
		if name == "bedrock_invocation_schema" {
			continue // the form of a request, not a price
		}
		if name == "provider_specific_entry" {
			var nested map[string]json.RawMessage
			if err := json.Unmarshal(value, &nested); err != nil {
				return nil, err
			}
			inner, err := uplifts(nested)
			if err != nil {
				return nil, err
			}
			made = merged(made, inner)
			continue
		}
		var factor float64
		if err := json.Unmarshal(value, &factor); err != nil || names[name] == "" {
			return nil, fmt.Errorf("the surcharge %s: %s is unknown", name, value)
		}
		made = merged(made, map[string]float64{names[name]: factor})
	}
	return made, nil
}

// merged adds entries to a map that may be nil.
func merged(to, from map[string]float64) map[string]float64 {
	if to == nil {
		return from
	}
	for k, v := range from {
		to[k] = v
	}
	return to
}

// referenceReasoning has prose where catalogue.Reasoning has values.
type referenceReasoning struct {
	Mode           string   `json:"mode"`
	SetBy          string   `json:"set_by"`
	Default        string   `json:"default"`
	DefaultEffort  string   `json:"default_effort"`
	Efforts        []string `json:"efforts"`
	Levels         []string `json:"levels"`
	ThinkingTypes  []string `json:"thinking_types"`
	DisplayDefault string   `json:"display_default"`
	Bound          bool     `json:"thinking_bound_to_prefix"`
	Context        []string `json:"context"`
	Modes          []string `json:"modes"`
	Budget         []int    `json:"budget"`
	Answer         string   `json:"answer"`
	ResponsesOnly  bool     `json:"responses_only"`
	ChatTools      string   `json:"tools_in_chat_completions"`
	Note           string   `json:"note"`
}

// thinkingType is a value of thinking.type with a condition in brackets.
var thinkingType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z_]+)(?: \((.*)\))?$`)
})

// reasoning converts what sets reasoning.
func (r referenceReasoning) reasoning(provider string) (catalogue.Reasoning, error) {
	made := catalogue.Reasoning{
		Mode: r.Mode, SetBy: r.SetBy, Efforts: r.Efforts, Levels: r.Levels, DisplayDefault: r.DisplayDefault, BoundToPrefix: r.Bound,
		Context: r.Context, Modes: r.Modes, Answer: r.Answer, ResponsesOnly: r.ResponsesOnly, Note: r.Note, DefaultEffort: r.DefaultEffort,
	}
	for _, text := range r.ThinkingTypes {
		parts := thinkingType().FindStringSubmatch(text)
		if parts == nil {
			return made, fmt.Errorf("thinking type %q", text)
		}
		made.ThinkingTypes = append(made.ThinkingTypes, parts[1])
		switch parts[2] {
		case "":
		case "budget_tokens >= 1024, < max_tokens":
			made.Budget = &catalogue.Budget{Min: 1024}
		case "effort high or below":
			made.DisabledUpTo = "high"
		default:
			return made, fmt.Errorf("thinking type %q", text)
		}
	}
	if len(r.Budget) == 2 {
		made.Budget = &catalogue.Budget{Min: r.Budget[0], Max: r.Budget[1]}
	}
	var ok bool
	if made.Control, ok = controls[r.SetBy]; !ok {
		return made, fmt.Errorf("reasoning set by %q", r.SetBy)
	}
	if made.ChatTools, ok = chatTools[r.ChatTools]; !ok {
		return made, fmt.Errorf("tools in Chat Completions: %q", r.ChatTools)
	}
	if made.Answer == "" && made.Reasons() {
		made.Answer = answers[provider]
	}
	return made, r.setDefault(&made)
}

// setDefault converts what holds without a setting.
func (r referenceReasoning) setDefault(made *catalogue.Reasoning) error {
	made.DefaultOn = r.Mode == catalogue.ReasonsAlways
	switch r.Default {
	case "", "the model's own":
	case "off", "none":
		made.Default = "off"
	case "on":
		made.Default, made.DefaultOn = "on", true
	case "adaptive, on":
		made.Default, made.DefaultOn = "adaptive", true
	case "dynamic (-1)":
		made.Default, made.DefaultOn = "dynamic", true
	case "minimal", "low", "medium", "high":
		made.Default, made.DefaultOn, made.DefaultEffort = r.Default, true, r.Default
	default:
		return fmt.Errorf("default of reasoning %q", r.Default)
	}
	return nil
}

// controls are the parameters that set reasoning, by their description.
var controls = map[string]catalogue.Control{
	"": "",
	"Responses reasoning.effort; Chat Completions reasoning_effort": catalogue.ReasoningEffort,
	"reasoning_effort":                       catalogue.ReasoningEffort,
	"thinking.type and output_config.effort": catalogue.ThinkingEffort,
	"additionalModelRequestFields.thinking / .output_config, or outputConfig.effort":                             catalogue.ConverseThinking,
	"additionalModelRequestFields.reasoningConfig {type: enabled|disabled, maxReasoningEffort: low|medium|high}": catalogue.ReasoningConfig,
	"enable_thinking, thinking_budget":                                          catalogue.EnableThinking,
	"generationConfig.thinkingConfig.thinkingLevel":                             catalogue.ThinkingLevel,
	"generationConfig.thinkingConfig.thinkingBudget":                            catalogue.ThinkingBudget,
	"thinking.type enabled/disabled; reasoning_effort; thinking.clear_thinking": catalogue.ThinkingSwitch,
	"thinking.type enabled/disabled and reasoning_effort":                       catalogue.ThinkingSwitch,
	"thinking.type enabled/disabled":                                            catalogue.ThinkingSwitch,
	"thinking.type enabled/disabled, thinking.token_budget":                     catalogue.ThinkingSwitch,
}

// chatTools are the conditions of function tools in Chat Completions, by their description.
var chatTools = map[string]string{
	"":                                      "",
	"never: reasoning cannot be turned off": catalogue.ToolsNever,
	"yes while reasoning_effort is omitted or none":     catalogue.ToolsIfOff,
	"only with reasoning_effort 'none' sent explicitly": catalogue.ToolsIfSetOff,
}

// answers are the fields in which hosts with OpenAI's protocol return reasoning.
var answers = map[string]string{
	"deepseek": "reasoning_content", "moonshotai": "reasoning_content", "zai": "reasoning_content", "qwen": "reasoning_content",
	"minimax": "<think> in the content, or reasoning_details with reasoning_split", "groq": "reasoning",
}
