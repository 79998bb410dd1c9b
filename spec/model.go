package spec

import "time"

// ModelEntity is a chat model or an embedding model.
type ModelEntity interface {
	Entity
	// Base is what both kinds of models share.
	Base() *Model
}

// Model is a chat model.
type Model struct {
	Positioned
	// ID is the model's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Provider is the service that runs the model: openai (and every server that speaks its protocol), mock (a deterministic offline model), langchaingo (a bridge to further services) and others.
	Provider string `yaml:"provider" jsonschema:"required" validate:"provider"`
	// ModelID is the name that the provider knows the model by; the id where it is left out. Some providers need it.
	ModelID string `yaml:"model_id"`
	// Auth names the credentials; without it the provider's usual environment variables are used.
	Auth Ref[Auth] `yaml:"auth"`
	// InferenceParams are passed to the provider as they are: temperature, max_tokens, top_p, …
	InferenceParams map[string]any `yaml:"inference_params"`
	// BaseURL is the address of an OpenAI-compatible server, such as http://localhost:11434/v1; OPENAI_BASE_URL where it is left out.
	BaseURL string `yaml:"base_url" validate:"omitempty,http_url"`
	// Timeout ends a call that takes longer, such as 30s or 2m.
	Timeout Duration `yaml:"timeout" default:"2m" validate:"gt=0"`
	// Retry says how often a call is repeated that failed for a passing reason.
	Retry *RetryPolicy `yaml:"retry"`
	// RateLimit holds calls back that would come faster than the provider allows.
	RateLimit *RateLimit `yaml:"rate_limit"`
	// Fallbacks name the models that are asked instead, in this order, when this one cannot answer.
	Fallbacks []Ref[ModelEntity] `yaml:"fallbacks"`
	// Prices are what the model's tokens cost; budgets in money and the reports of runs need them.
	Prices *Prices `yaml:"prices"`
	// ContextWindow is how many tokens the model can read and write in one call; known for common models.
	ContextWindow int `yaml:"context_window" validate:"gte=0"`
	// Offline names the mock model that stands in while there are no credentials: no auth, no key in the environment and no base URL. Every run says so.
	Offline Ref[*Model] `yaml:"offline"`
	// Rules tell a mock model what to answer; the first whose pattern matches the newest user message is taken.
	Rules []*MockRule `yaml:"rules"`
}

// EntityID is the id.
func (m *Model) EntityID() string { return m.ID }

// Kind is KindModel.
func (m *Model) Kind() Kind { return KindModel }

// Base is the model itself.
func (m *Model) Base() *Model { return m }

// Name is what the provider knows the model by.
func (m *Model) Name() string {
	if m.ModelID != "" {
		return m.ModelID
	}
	return m.ID
}

// EmbeddingModel turns texts into vectors.
type EmbeddingModel struct {
	Model
	// Dimensions is the length of the vectors.
	Dimensions int `yaml:"dimensions" jsonschema:"required" validate:"gt=0"`
}

// Duration is a length of time, written as Go does: 500ms, 30s, 2m, 720h.
type Duration time.Duration

// RetryPolicy says how a failed call is repeated: exponentially later each time, with jitter.
type RetryPolicy struct {
	Positioned
	// MaxAttempts is how often a call is tried in all; 1 means no retry.
	MaxAttempts int `yaml:"max_attempts" default:"3" validate:"gt=0"`
	// InitialDelay is the wait before the second attempt.
	InitialDelay Duration `yaml:"initial_delay" default:"500ms" validate:"gt=0"`
	// MaxDelay is the longest wait between two attempts.
	MaxDelay Duration `yaml:"max_delay" default:"30s" validate:"gt=0"`
}

// RateLimit is how fast a model may be called. What is left out has no limit.
type RateLimit struct {
	Positioned
	// RequestsPerMinute is the most calls a minute.
	RequestsPerMinute int `yaml:"requests_per_minute" validate:"gt=0"`
	// TokensPerMinute is the most tokens a minute, read and written.
	TokensPerMinute int `yaml:"tokens_per_minute" validate:"gt=0"`
}

// Prices are what a model's tokens cost, in any one currency for a million tokens.
type Prices struct {
	Positioned
	// Input is the price of a million tokens that the model reads.
	Input float64 `yaml:"input" jsonschema:"required" validate:"gte=0"`
	// Output is the price of a million tokens that the model writes.
	Output float64 `yaml:"output" default:"0" validate:"gte=0"`
}

// MockRule is one rule of a mock model. Exactly one of text, tool_calls, error and echo says what it answers.
type MockRule struct {
	Positioned
	// Match is a regular expression (RE2) on the newest user message; without it the rule always matches.
	Match string `yaml:"match"`
	// After limits the rule to calls whose last message is of this role: user or tool.
	After string `yaml:"after" validate:"omitempty,oneof=user tool"`
	// Text is the answer; $1 or ${name} is replaced by what the pattern captured.
	Text string `yaml:"text"`
	// ToolCalls are the tools that the answer asks for.
	ToolCalls []*MockToolCall `yaml:"tool_calls"`
	// Error fails the call with this text.
	Error string `yaml:"error"`
	// Status is the HTTP status that the error carries, such as 429 or 500.
	Status int `yaml:"status" validate:"omitempty,min=400,max=599"`
	// Echo answers with what was sent: how many messages and tokens, and the newest message.
	// Where an Agent asks for a record, its texts say so.
	Echo bool `yaml:"echo" default:"false"`
}

// MockToolCall is a tool call that a mock model makes.
type MockToolCall struct {
	Positioned
	// Name is the tool's name.
	Name string `yaml:"name" jsonschema:"required"`
	// Arguments are the call's arguments; in texts $1 is replaced by what the pattern captured.
	Arguments map[string]any `yaml:"arguments"`
}
