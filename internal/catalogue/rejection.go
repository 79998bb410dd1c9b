package catalogue

import "slices"

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
