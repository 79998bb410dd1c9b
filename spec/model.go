package spec

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// ModelEntity is a chat model or an embedding model.
type ModelEntity interface {
	Entity
	// Base returns the fields that both kinds of models share.
	Base() *Model
	// Conflict returns the first key that the provider cannot use, and why; empty for none.
	Conflict() (key, problem string)
}

// Model is a chat model.
type Model struct {
	Positioned
	// ID is the model's unique name in the document.
	ID string `yaml:"id" jsonschema:"required"`
	// Provider is the service that runs the model.
	Provider string `yaml:"provider" jsonschema:"required" validate:"provider"`
	// ModelID is the provider's name of the model. The default is the id; some providers require the key.
	ModelID string `yaml:"model_id"`
	// Auth names the credentials. The default is the environment variables of the provider.
	Auth Ref[Auth] `yaml:"auth"`
	// InferenceParams are sent to the provider unchanged: temperature, max_tokens, top_p, … An unquoted ${NAME} becomes a number or a boolean where the parameter is one.
	InferenceParams map[string]any `yaml:"inference_params" variables:"typed"`
	// Thinking is how much the model reasons before it answers: off, low, medium, high, max, or a number of tokens for models that take one. The parameters that the model takes are sent; the default is the model's own.
	Thinking Thinking `yaml:"thinking"`
	// Headers are sent with each request, such as {anthropic-beta: NAME}. A value may be a secret.
	Headers map[string]Secret `yaml:"headers" secret:"named"`
	// BaseURL is the address of the server, such as http://localhost:11434/v1. The default is the variable of the provider, such as OPENAI_BASE_URL, and then the provider's own service.
	BaseURL string `yaml:"base_url" validate:"omitempty,http_url"`
	// API is the protocol of OpenAI's models: chat is chat completions, responses the Responses API. The default is chat, and responses for models of OpenAI's own service and of Azure OpenAI that refuse tools in chat completions.
	API string `yaml:"api" validate:"omitempty,oneof=chat responses"`
	// Deployment is the name of the deployment in Azure OpenAI. The default is the model_id.
	Deployment string `yaml:"deployment"`
	// APIVersion is the version of Azure OpenAI's protocol, such as 2024-10-21. The default is v1, which has no versions by date.
	APIVersion string `yaml:"api_version"`
	// Timeout limits one call, such as 30s or 2m.
	Timeout Duration `yaml:"timeout" default:"2m" validate:"gt=0"`
	// Retry configures how calls are retried that failed temporarily.
	Retry *RetryPolicy `yaml:"retry"`
	// RateLimit delays calls that would exceed the limits of the provider.
	RateLimit *RateLimit `yaml:"rate_limit"`
	// CircuitBreaker configures when a server that fails is not called for a time.
	CircuitBreaker *CircuitBreaker `yaml:"circuit_breaker"`
	// Batch configures the batches of the provider, in which runs with --batch make the calls of the model.
	Batch *ModelBatch `yaml:"batch"`
	// Fallbacks name the models that are called, in this order, if this one fails.
	Fallbacks []Ref[ModelEntity] `yaml:"fallbacks"`
	// StructuredOutput is how a required form of the answer is requested: schema sends the provider a JSON schema, json_object requests any JSON object, prompt relies on the system message. auto uses the first of these that the server accepts, and remembers it while the process runs.
	StructuredOutput string `yaml:"structured_output" default:"auto" validate:"omitempty,oneof=schema json_object prompt auto"`
	// PromptCache is whether requests have the markers by which the provider caches the beginning of a prompt: tools, system message, and the conversation where it goes on; of OpenAI's models that have markers, the system message. auto leaves the lifetime of what is cached to the provider, 5m and 1h set it, none leaves out the markers. Other providers cache without markers.
	PromptCache string `yaml:"prompt_cache" default:"auto" validate:"omitempty,oneof=auto 5m 1h none"`
	// OnTruncation is what happens to an answer that the provider ended at the token limit or by its content filter: error fails the call, warn uses the answer and prints a warning, continue requests the rest of the answer at the token limit, at most 8 times, and joins the parts.
	OnTruncation string `yaml:"on_truncation" default:"error" validate:"omitempty,oneof=error warn continue"`
	// Prices are the costs of the model's tokens, for budgets in money and the reports of runs.
	Prices *Prices `yaml:"prices"`
	// ContextWindow is the number of tokens that the model reads and writes in one call. The default is known for common models.
	ContextWindow int `yaml:"context_window" validate:"gte=0"`
	// Offline names the mock model that replaces this one while there are no credentials: no auth, no key in the environment and no base URL. An embedding model may name a mock of either kind. Every run reports it.
	Offline Ref[ModelEntity] `yaml:"offline"`
	// Rules are the answers of a mock model. The first rule whose pattern matches the newest user message applies.
	Rules []*MockRule `yaml:"rules"`

	// Catalogue is where Known looks the model up; nil is the built-in catalogue.
	Catalogue *catalogue.Catalogue `yaml:"-"`
	// Elsewhere is the address that a variable of the environment has for the server of the model, empty for none.
	Elsewhere string `yaml:"-"`
	// HasHosted reports that an agent of the model has tools that the provider runs.
	HasHosted bool `yaml:"-"`

	row *Provider // see Language.Link; nil for a provider of this package
}

// EntityID returns the id.
func (m *Model) EntityID() string { return m.ID }

// Kind returns KindModel.
func (m *Model) Kind() Kind { return KindModel }

// Base returns the model itself.
func (m *Model) Base() *Model { return m }

// OfflineMock returns what Offline names; nil for none.
func (m *Model) OfflineMock() *Model {
	if m.Offline.To == nil {
		return nil
	}
	return m.Offline.To.Base()
}

// Name returns the provider's name of the model.
func (m *Model) Name() string {
	if m.ModelID != "" {
		return m.ModelID
	}
	return m.ID
}

// EmbeddingModel converts texts to vectors.
type EmbeddingModel struct {
	Model
	// Dimensions is the length of the vectors.
	Dimensions int `yaml:"dimensions" jsonschema:"required" validate:"gt=0"`
	// VectorCache configures the cache of vectors: a text that the model has embedded is not sent to it again.
	VectorCache *VectorCache `yaml:"vector_cache"`
}

// VectorCacheSizeMB is the default limit of the vectors of a model, in MiB.
const VectorCacheSizeMB = 1024

// VectorCache configures the cache of the vectors of an embedding model, which is on unless it is disabled.
type VectorCache struct {
	Positioned
	// Enabled can be set to false, so that each text is sent to the model.
	Enabled bool `yaml:"enabled" default:"true"`
	// Directory is the folder of the cache.
	Directory string `yaml:"directory" default:"./.qtype-cache"`
	// MaxSizeMB is how many MiB the vectors of the model may take on disk; the least recently used ones are evicted.
	MaxSizeMB int `yaml:"max_size_mb" default:"1024" validate:"gt=0"`
}

// Duration is a length of time in Go's notation: 500ms, 30s, 2m, 720h.
type Duration time.Duration

// RetryPolicy configures retries: with exponential backoff and jitter.
type RetryPolicy struct {
	Positioned
	// MaxAttempts is the maximum number of attempts; 1 means no retry.
	MaxAttempts int `yaml:"max_attempts" default:"3" validate:"gt=0"`
	// InitialDelay is the delay before the second attempt.
	InitialDelay Duration `yaml:"initial_delay" default:"500ms" validate:"gt=0"`
	// MaxDelay is the maximum delay between two attempts.
	MaxDelay Duration `yaml:"max_delay" default:"30s" validate:"gt=0"`
}

// RateLimit limits the calls of a model. A missing key means no limit.
type RateLimit struct {
	Positioned
	// RequestsPerMinute is the maximum number of calls per minute.
	RequestsPerMinute int `yaml:"requests_per_minute" validate:"gt=0"`
	// TokensPerMinute is the maximum number of tokens per minute, read and written.
	TokensPerMinute int `yaml:"tokens_per_minute" validate:"gt=0"`
	// MaxWait is how long one call waits in total if the rate limit of the provider rejects it; then it fails. Calls of a model with fallbacks wait no longer than max_delay of retry.
	MaxWait Duration `yaml:"max_wait" default:"10m" validate:"gt=0"`
}

// ModelBatch configures the batches of a provider, in which runs and evaluations with --batch make the calls of a model. Others, and servers, ignore it.
type ModelBatch struct {
	Positioned
	// Enabled is whether calls are made in batches; without, they are made at once, at the normal price.
	Enabled bool `yaml:"enabled" default:"true"`
	// MaxCalls is the number of calls in a batch, at most. The default is the limit of the provider.
	MaxCalls int `yaml:"max_calls" validate:"gt=0"`
	// MinCalls is the number of calls for which a batch is worth waiting: fewer are made at once, at the normal price. The default is 1, and 20 with --batch=auto.
	MinCalls int `yaml:"min_calls" validate:"gt=0"`
	// Bucket is the folder of a bucket for the calls and answers of batches: s3://bucket/folder for aws-bedrock and gs://bucket/folder for gcp-vertex, which require it. The files stay there.
	Bucket string `yaml:"bucket"`
	// Role is the ARN of the IAM role by which aws-bedrock reads and writes the bucket.
	Role string `yaml:"role"`
}

// CircuitBreaker configures when a server that fails is not called for a time. Models of one server share it.
type CircuitBreaker struct {
	Positioned
	// Failures is how many attempts must fail in sequence, by an HTTP status of 500 or more, a connection that fails or a time limit, until calls are not sent; 0 means never.
	Failures int `yaml:"failures" default:"20" validate:"gte=0"`
	// OpenFor is how long no call is sent. Then one call is, and its result decides.
	OpenFor Duration `yaml:"open_for" default:"30s" validate:"gt=0"`
}

// Prices are the costs of a model's tokens, per million tokens, in any one currency.
type Prices struct {
	Positioned
	// Input is the price of a million tokens that the model reads.
	Input float64 `yaml:"input" jsonschema:"required" validate:"gte=0,lte=1000000000"`
	// Output is the price of a million tokens that the model writes.
	Output float64 `yaml:"output" default:"0" validate:"gte=0,lte=1000000000"`
	// CachedInput is the price of a million tokens that the model reads from the provider's prompt cache. The default is that of input.
	CachedInput *float64 `yaml:"cached_input" validate:"omitempty,gte=0,lte=1000000000"`
	// CacheWrite is the price of a million tokens that are written to the provider's prompt cache. The default is that of input.
	CacheWrite *float64 `yaml:"cache_write" validate:"omitempty,gte=0,lte=1000000000"`
}

// MockRule is one rule of a mock model. Exactly one of text, tool_calls, error and echo is its answer.
type MockRule struct {
	Positioned
	// Match is a regular expression (RE2) on the newest user message; without it the rule always matches.
	Match string `yaml:"match"`
	// System is a regular expression (RE2) on the system message, so that the answer depends on the instructions. What it captures is `$1` or `${name}` in the answer if match has no such group.
	System string `yaml:"system"`
	// After limits the rule to calls whose last message has this role: user or tool.
	After string `yaml:"after" validate:"omitempty,oneof=user tool"`
	// Round limits the rule to one of the calls since the newest user message, from 1: tools are called between them.
	Round int `yaml:"round" validate:"omitempty,gte=1"`
	// Text is the answer; $1 or ${name} is replaced by what the pattern captured.
	Text string `yaml:"text"`
	// Reasoning is what the model thinks before the answer; it is streamed and not stored.
	Reasoning string `yaml:"reasoning"`
	// Delay is the time before each word of a streamed answer, and before an answer that is not streamed: the mock is as slow as a model.
	Delay Duration `yaml:"delay" validate:"gte=0"`
	// ToolCalls are the tool calls of the answer.
	ToolCalls []*MockToolCall `yaml:"tool_calls"`
	// Finish is why the answer ends; length and content_filter are incomplete answers.
	Finish string `yaml:"finish" validate:"omitempty,oneof=stop length content_filter"`
	// Error fails the call with this text.
	Error string `yaml:"error"`
	// Status is the HTTP status of the error, such as 429 or 500.
	Status int `yaml:"status" validate:"omitempty,min=400,max=599"`
	// Echo answers with a summary of the request: the number of messages and tokens, and the newest message.
	// If an Agent requests a record, its texts contain the summary.
	Echo bool `yaml:"echo" default:"false"`
}

// Responses lists the keys of the responses of the rule, which must be exactly one. A text
// that is written and empty is a response; echo: false is none.
func (r *MockRule) Responses() []string {
	var keys []string
	for _, a := range []struct {
		key string
		set bool
	}{{"text", r.Text != ""}, {"tool_calls", len(r.ToolCalls) > 0}, {"error", r.Error != ""}, {"echo", r.Echo}} {
		if _, written := r.position.Lookup(a.key); a.set || written && a.key != "echo" {
			keys = append(keys, a.key)
		}
	}
	return keys
}

// MockToolCall is a tool call that a mock model makes.
type MockToolCall struct {
	Positioned
	// Name is the tool's name.
	Name string `yaml:"name" jsonschema:"required"`
	// Arguments are the call's arguments; in texts $1 is replaced by what the pattern captured.
	Arguments map[string]any `yaml:"arguments"`
}

// The protocols of OpenAI's models, values of Model.API.
const (
	ChatAPI      = "chat"      // Chat Completions
	ResponsesAPI = "responses" // the Responses API
)

// UsesResponses reports whether a model of OpenAI or Azure OpenAI is called by the Responses API:
// as the document declares, or else if the service of the provider answers some requests of the
// model only there, such as those with hosted tools. Other servers may not have the API, and are called by Chat Completions.
func (m *Model) UsesResponses() bool {
	switch {
	case m.Provider != "openai" && m.Provider != "azure-openai":
		return false
	case m.API != "":
		return m.API == ResponsesAPI
	case !m.OwnService() || m.datedAPI():
		return false
	case m.HasHosted && m.Elsewhere == "" && !strings.Contains(m.Name(), "-search-"): // which search in chat completions only
		return true
	}
	known, ok := m.Known()
	effort, _ := m.InferenceParams["reasoning_effort"].(string)
	switch m.Thinking {
	case "":
	case ThinkingOff:
		effort = "none"
	default:
		effort = string(m.Thinking)
	}
	return ok && (known.Reasoning.ResponsesOnly || known.Reasoning.RefusesToolsInChat(effort))
}

// OwnService reports whether the service of the provider is called, or an endpoint of Azure OpenAI.
func (m *Model) OwnService() bool {
	row, ok := m.ProviderRow()
	return ok && (m.address() == "" || row.Name == "azure-openai" || isOwnService(row.BaseURL, m.address()))
}

// datedAPI reports whether the document has a version of Azure OpenAI's protocol with a date:
// most of them are older than the Responses API.
func (m *Model) datedAPI() bool {
	return m.APIVersion != "" && m.APIVersion != "v1" && m.APIVersion != "preview"
}

// Conflict returns the first key of the model that its provider cannot use, and what is
// wrong with it; both are empty if there is none. A provider that this version does not
// run is reported by CheckAvailable.
func (m *Model) Conflict() (key, problem string) {
	row, ok := callableProvider(m)
	switch {
	case !ok:
		return "", ""
	case row.NoChat:
		return "provider", fmt.Sprintf("the provider %s has no chat models", row.Name)
	case row.NoPath && m.BaseURL != "":
		if u, err := url.Parse(m.BaseURL); err == nil && !HasNoPath(u) {
			return "base_url", fmt.Sprintf("base_url of %s must have no path", row.Name)
		}
	}
	if problem := m.Batch.conflict(row); problem != "" {
		return "batch", problem
	}
	return m.headersConflict(row)
}

// conflict returns why a provider cannot have the batches of a model; empty if it can.
func (b *ModelBatch) conflict(row Provider) string {
	needs := row.BatchBucket
	switch {
	case b == nil || !slices.Contains(row.ModelKeys, "batch"): // another rule reports it
		return ""
	case needs == nil && b.Bucket != "":
		return fmt.Sprintf("batches of %s have no bucket", row.Name)
	case (needs == nil || !needs.Role) && b.Role != "":
		return fmt.Sprintf("batches of %s have no role", row.Name)
	case needs == nil || !b.Enabled && b.Bucket == "":
		return ""
	case !needs.isFolder(b.Bucket):
		return fmt.Sprintf("batches of %s need a bucket: expected an address such as %sbucket/folder", row.Name, needs.Scheme)
	case needs.Role && !strings.HasPrefix(b.Role, "arn:"):
		return fmt.Sprintf("batches of %s need a role: expected the ARN of the IAM role that reads and writes the bucket", row.Name)
	case b.MaxCalls > 0 && b.MaxCalls < needs.LeastCalls, b.MinCalls > 0 && b.MinCalls < needs.LeastCalls:
		return fmt.Sprintf("min_calls and max_calls: a batch of %s has at least %d calls", row.Name, needs.LeastCalls)
	}
	return ""
}

// isFolder reports whether an address is that of a bucket, or of a folder in one.
func (n *BatchBucket) isFolder(address string) bool {
	rest, ok := strings.CutPrefix(address, n.Scheme)
	return ok && rest != "" && !strings.HasPrefix(rest, "/") && !strings.ContainsAny(rest, "?#%\\ ") && !slices.Contains(strings.Split(rest, "/"), "..")
}

// headersConflict is the part of Conflict about headers.
func (m *Model) headersConflict(row Provider) (key, problem string) {
	if len(m.Headers) == 0 {
		return "", ""
	}
	if row.Client != NativeClient {
		return "headers", fmt.Sprintf("the provider %s sends no headers", row.Name)
	}
	if _, problem := m.HeaderConflict(); problem != "" {
		return "headers", problem
	}
	return "", ""
}

// HasNoPath reports whether an address has no path, except for the version v1.
func HasNoPath(u *url.URL) bool {
	path := strings.Trim(u.Path, "/")
	return path == "" || path == "v1"
}

// Conflict is Conflict of an embedding model.
func (m *EmbeddingModel) Conflict() (key, problem string) {
	row, ok := callableProvider(&m.Model)
	switch {
	case !ok:
		return "", ""
	case m.Thinking != "":
		return "thinking", "an embedding model does not reason"
	case !row.Embeddings:
		return "provider", fmt.Sprintf("the provider %s has no embedding models", row.Name)
	case len(row.EmbeddingProtocols) > 0 && !slices.Contains(row.EmbeddingProtocols, m.embeddingProtocol()):
		return "model_id", fmt.Sprintf("%s is not an embedding model of %s that is supported: the catalogue has none of that name with embedding_protocol %s", m.Name(), row.Name, strings.Join(row.EmbeddingProtocols, " or "))
	case row.Client == LocalClient && strings.Contains(m.Name(), schemeEnd):
		return "model_id", fmt.Sprintf("%q is an address; provider %s reads a local folder", m.Name(), row.Name)
	}
	return m.headersConflict(row)
}

// embeddingProtocol returns the form of requests to the model, empty if it is not known.
func (m *EmbeddingModel) embeddingProtocol() string {
	if known, ok := m.Known(); ok {
		return known.EmbeddingProtocol
	}
	return ""
}

// AuthConflict returns why calls of the model cannot use its auth, empty if they can.
// An auth that has no effect, such as that of a mock, is no conflict.
func (m *Model) AuthConflict() string {
	row, ok := callableProvider(m)
	auth := m.Auth.To
	if !ok || auth == nil || len(row.Auths) == 0 {
		return ""
	}
	if _, isKey := auth.(KeyAuth); isKey || slices.Contains(row.Auths, TypeName(auth)) {
		return ""
	}
	return fmt.Sprintf("provider %s takes an auth of type %s; %s is %s", row.Name, strings.Join(row.Auths, " or "), auth.EntityID(), TypeName(auth))
}

// callableProvider returns the row of a model's provider, and whether this version runs it.
func callableProvider(m *Model) (Provider, bool) {
	row, known := m.ProviderRow()
	return row, known && row.Client != MissingClient
}

// IsHTTPAddress reports whether a text is the http or https address of a server, which
// `base_url`, environment variables of base URLs and endpoints must be.
func IsHTTPAddress(text string) bool {
	u, err := parseAddress(text)
	return err == nil && u.Hostname() != ""
}

// Thinking is how much a model reasons before it answers: one of ThinkingWords, or a number of
// tokens as text. Empty leaves it to the model.
type Thinking string

// The words of Thinking.
const (
	ThinkingOff    Thinking = "off"
	ThinkingLow    Thinking = "low"
	ThinkingMedium Thinking = "medium"
	ThinkingHigh   Thinking = "high"
	ThinkingMax    Thinking = "max"
)

// ThinkingWords lists the words, from the least to the most.
func ThinkingWords() []Thinking {
	return []Thinking{ThinkingOff, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingMax}
}

// Valid reports whether t is a word or a positive number of tokens.
func (t Thinking) Valid() bool { return slices.Contains(ThinkingWords(), t) || t.Budget() > 0 }

// Budget returns the number of tokens, 0 for a word.
func (t Thinking) Budget() int {
	n, err := strconv.Atoi(string(t))
	if err != nil {
		return 0
	}
	return n
}

// Tokenizer is what counts tokens: an encoding that qtype contains, or a file.
type Tokenizer struct {
	Encoding string // the name of the encoding; empty for a file
	File     string // the path of the file; empty for an encoding
}

// IsZero reports whether the document names no tokenizer.
func (t Tokenizer) IsZero() bool { return t == Tokenizer{} }

// Encodings returns the names of the encodings that a document may name, newest first.
func Encodings() []string {
	return []string{"o200k_base", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base"}
}
