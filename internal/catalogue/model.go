package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Model is one row of a catalogue: what is known of a model at one provider. What is not
// known has its zero value. The JSON form is a line of models.jsonl and a row of a user's
// models.yaml. Callers must not change a Model that a catalogue returned.
type Model struct {
	Provider  string   `json:"provider"`            // as in `provider` of a document; hosts with OpenAI's protocol have other names: deepseek, xai
	ID        string   `json:"id"`                  // as the provider spells it
	Aliases   []string `json:"aliases,omitempty"`   // other names of the same model
	Snapshots []string `json:"snapshots,omitempty"` // dated names of the model that ID means
	Family    string   `json:"family,omitempty"`    // models of a family differ in size, not in kind
	Kind      Kind     `json:"kind,omitempty"`      // of a user's row without one: that of the row that it changes, or chat

	ContextWindow int      `json:"context_window,omitempty"`    // tokens that it reads and writes in one call
	MaxInput      int      `json:"max_input,omitempty"`         // tokens that it reads in one call
	MaxOutput     int      `json:"max_output,omitempty"`        // tokens that it writes in one call, with its reasoning
	Input         []string `json:"input_modalities,omitempty"`  // text, image, pdf, audio, video
	Output        []string `json:"output_modalities,omitempty"` // text, image, embedding
	Dimensions    int      `json:"dimensions,omitempty"`        // of the vectors of an embedding model, without another setting

	DimensionsSet     Answer `json:"dimensions_set,omitzero"`      // a request can set the dimensions
	EmbeddingProtocol string `json:"embedding_protocol,omitempty"` // the form of requests on Bedrock: titan, nova, cohere or cohere-v4

	Prices     *Prices     `json:"prices,omitempty"` // nil if unknown
	Reasoning  Reasoning   `json:"reasoning,omitzero"`
	Rejected   []Rejection `json:"rejected_parameters,omitempty"` // what a request to it must not have
	Structured Structured  `json:"structured_output,omitzero"`
	Tools      Tools       `json:"tools,omitzero"`
	Cache      PromptCache `json:"prompt_cache,omitzero"`
	Streaming  Streaming   `json:"streaming,omitempty"`
	MidSystem  Answer      `json:"system_within_conversation,omitzero"` // a conversation can have system messages after its beginning; of Anthropic's models
	Endpoints  []string    `json:"endpoints,omitempty"`                 // paths of the service that accept it; empty if unknown
	BaseURL    string      `json:"base_url,omitempty"`                  // address of the service, with REGION where it depends on one; empty for the provider's own

	Profiles map[string]Profile `json:"inference_profiles,omitempty"` // Bedrock's inference profiles, by their prefix: us, eu, global
	PlainID  Answer             `json:"plain_id_listed,omitzero"`     // whether Bedrock also lists ID without the prefix of a profile

	Status      Status `json:"status,omitempty"`
	Shutdown    string `json:"shutdown_date,omitempty"` // YYYY-MM-DD
	Replacement string `json:"replacement,omitempty"`   // the model that the provider recommends in its place
	Redirected  bool   `json:"redirected,omitempty"`    // from the shutdown date on, the provider answers the name with Replacement

	Note         string   `json:"note,omitempty"`         // what no other field can say
	Disagreement []string `json:"disagreement,omitempty"` // where sources differ; the row has the first
	ThirdParty   []string `json:"third_party,omitempty"`  // fields that are known from others than the provider
	Sources      []string `json:"sources,omitempty"`      // where the row is from, with the date

	// Suggested is the model of its provider that examples and templates name.
	Suggested bool `json:"suggested,omitempty"`

	// Profile is the prefix of the inference profile that a lookup named: us of
	// us.anthropic.claude-opus-5-5. The prices are those of the profile.
	Profile string `json:"-"`
	// FineTuned reports that a lookup named a fine-tuned model: it has the limits of this row,
	// and other prices, which are unknown.
	FineTuned bool `json:"-"`
	// PricedByUser reports that the prices are those of a row of the user.
	PricedByUser bool `json:"-"`
	// Given is the JSON of a row of the user: the keys that change the row of that name. It is nil for
	// other rows, whose zero values change nothing.
	Given json.RawMessage `json:"-"`
	// Server is the key of the only server whose models the row of a user is about; empty for
	// the provider.
	Server string `json:"-"`
}

// Kind is what a model does.
type Kind string

// The kinds of models.
const (
	Chat      Kind = "chat"
	Embedding Kind = "embedding"
	Rerank    Kind = "rerank"
)

// Status is whether a model answers.
type Status string

// The statuses of models.
const (
	Active     Status = "active"
	Deprecated Status = "deprecated" // answers until its shutdown date
	Retired    Status = "retired"    // does not answer, or is answered by another model
)

// Streaming is how the answers of a model come; empty for whole or streamed, as the request says.
type Streaming string

// The answers that come in one way only.
const (
	StreamsNever  Streaming = "never"  // whole
	StreamsAlways Streaming = "always" // streamed
)

// Answer is yes, no or unknown. Its JSON form is true or false; unknown is absent.
type Answer int8

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// MarshalJSON writes true or false, and null for unknown.
func (a Answer) MarshalJSON() ([]byte, error) {
	return []byte([...]string{Unknown: "null", No: "false", Yes: "true"}[a]), nil
}

// UnmarshalJSON reads true, false or null.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var yes *bool
	if err := json.Unmarshal(text, &yes); err != nil {
		return fmt.Errorf("must be true or false, not %s", text)
	}
	switch *a = Unknown; {
	case yes == nil:
	case *yes:
		*a = Yes
	default:
		*a = No
	}
	return nil
}

// Structured is whether and how a model answers by a JSON schema.
type Structured struct {
	JSONSchema  Answer `json:"json_schema,omitzero"`
	By          string `json:"by,omitempty"` // the parameter that has the schema, where it is not response_format
	StrictTools Answer `json:"strict_tools,omitzero"`
	ForcedTool  Answer `json:"forced_tool,omitzero"` // Bedrock returns the answer as the call of a tool that the request forces
}

// Tools is what a model can do with tools.
type Tools struct {
	FunctionCalling Answer   `json:"function_calling,omitzero"`
	Parallel        Answer   `json:"parallel,omitzero"`      // several calls in one answer
	ToolChoice      Answer   `json:"tool_choice,omitzero"`   // a request can set tool_choice
	ToolChoices     []string `json:"tool_choices,omitempty"` // the only values of tool_choice; empty for the usual ones
	MediaResults    Answer   `json:"media_results,omitzero"` // results can have images and files
}

// PromptCache is how a provider caches the beginning of prompts for a model.
type PromptCache struct {
	Supported   Answer   `json:"supported,omitzero"`
	MinTokens   int      `json:"min_tokens,omitempty"` // of the shortest beginning that is cached
	Breakpoints Answer   `json:"breakpoints,omitzero"` // requests can mark where a cached beginning ends
	ToolPoints  Answer   `json:"tool_points,omitzero"` // also after the tools, on Bedrock
	Lifetimes   []string `json:"ttl,omitempty"`        // lifetimes that a request can choose
}

// Profile is an inference profile of Bedrock: a model in the regions of a prefix.
type Profile struct {
	ID     string  `json:"id"`
	Input  float64 `json:"input"`  // dollars for a million tokens
	Output float64 `json:"output"` // dollars for a million tokens
}

// Server is a host with a protocol of another provider.
type Server struct {
	Provider     string   `json:"provider"`                     // the provider of the rows of its models
	BaseURL      string   `json:"base_url"`                     // where OpenAI's protocol begins
	AnthropicURL string   `json:"anthropic_base_url,omitempty"` // where Anthropic's protocol begins; empty for none
	Sources      []string `json:"sources,omitempty"`
}

// StopsBy returns whether a model has stopped answering by the end of a day. Without a day it
// is what the row says.
func (m *Model) StopsBy(day time.Time) bool {
	if day.IsZero() || m.Shutdown == "" {
		return m.Status == Retired
	}
	return m.Shutdown <= day.Format(time.DateOnly)
}

// DaysLeft returns the number of days from a day until the shutdown date. It is false without
// a date.
func (m *Model) DaysLeft(day time.Time) (int, bool) {
	end, err := time.Parse(time.DateOnly, m.Shutdown)
	if err != nil {
		return 0, false
	}
	from, _ := time.Parse(time.DateOnly, day.Format(time.DateOnly))
	return int(end.Sub(from).Hours() / 24), true
}

// Successor returns the model to use in place of another one, by the name that it has where
// that one was named: the replacement, or its own replacement if it will not answer on the day.
// It is nil if none is known.
func (c *Catalogue) Successor(m *Model, on time.Time) (name string, next *Model) {
	seen := []string{m.ID}
	for next = m; next == m || next.StopsBy(on); {
		found, ok := c.Lookup(m.Provider, next.Replacement)
		if !ok || found.Provider != m.Provider || slices.Contains(seen, found.ID) {
			return "", nil
		}
		name, next = next.Replacement, found
		seen = append(seen, found.ID)
	}
	if _, ok := next.Profiles[m.Profile]; ok {
		name = m.Profile + "." + name
	}
	return name, next
}

// Rejection is a parameter, or a value of one, that a model refuses.
type Rejection struct {
	Parameters []string  `json:"parameters"`            // names as in the request; dots separate nested names
	Values     []string  `json:"values,omitempty"`      // the refused values; empty for every value
	Except     []string  `json:"except,omitempty"`      // the only accepted values; "default" is the value without a setting
	Missing    bool      `json:"missing,omitempty"`     // refused is a request without the parameter
	When       Condition `json:"when"`                  // when it is refused
	Efforts    []string  `json:"efforts,omitempty"`     // the efforts of the condition AtEfforts
	API        string    `json:"api,omitempty"`         // ChatCompletions if only that endpoint refuses it; empty for all
	Status     int       `json:"status,omitempty"`      // HTTP status of the refusal
	Code       string    `json:"code,omitempty"`        // error.code
	Param      string    `json:"param,omitempty"`       // error.param
	Type       string    `json:"type,omitempty"`        // error.type
	Error      string    `json:"error,omitempty"`       // error.message, with an example of a name or a value; empty if unknown
	Text       string    `json:"text"`                  // the rule in words
	Note       string    `json:"note,omitempty"`        // what is uncertain
	ThirdParty bool      `json:"third_party,omitempty"` // known from others than the provider
	Sources    []string  `json:"sources,omitempty"`
}

// Condition is when a model refuses a parameter.
type Condition string

// The conditions.
const (
	Always          Condition = "always"
	ReasoningOn     Condition = "reasoning_on"     // the request has reasoning on, or the model reasons without a setting
	ReasoningOff    Condition = "reasoning_off"    // the opposite
	ThinkingEnabled Condition = "thinking_enabled" // thinking.type is enabled, not adaptive
	AtEfforts       Condition = "efforts"          // the effort is one of Efforts
	InToolTurn      Condition = "tool_turn"        // the request has calls of the current turn
)

// ChatCompletions is the endpoint /chat/completions, in Rejection.API.
const ChatCompletions = "chat_completions"

// Rejects reports whether an endpoint always refuses a parameter, with every value. It is false
// for nil, which is an unknown model.
func (m *Model) Rejects(parameter, api string) bool {
	return m != nil && slices.ContainsFunc(m.Rejected, func(r Rejection) bool {
		return r.When == Always && !r.Missing && len(r.Values) == 0 && len(r.Except) == 0 && (r.API == "" || r.API == api) && slices.Contains(r.Parameters, parameter)
	})
}

// Requires reports whether the model refuses some requests without a parameter. It is false for nil.
func (m *Model) Requires(parameter string) bool {
	return m != nil && slices.ContainsFunc(m.Rejected, func(r Rejection) bool { return r.Missing && slices.Contains(r.Parameters, parameter) })
}
