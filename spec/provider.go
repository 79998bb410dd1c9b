package spec

import (
	"slices"
	"sync"
)

// Provider declares one model provider: a row of the table that the loader, the
// validator, the schema, the editor, the manual and the runtime read. What calls
// the provider is the row of the same name in internal/model/provider.
type Provider struct {
	Name               string         // the value of the key `provider`
	Doc                string         // what it is, as a phrase for the manual and the editor
	Client             ClientKind     // how calls reach it
	Key                KeyPolicy      // when a call needs a key
	KeyEnv             []string       // environment variables of the key, the preferred one first
	BaseURL            string         // address of the provider's service, with REGION or RESOURCE where it depends on them; empty for none
	BaseURLEnv         string         // environment variable that overrides BaseURL; empty for none
	BaseURLOldEnv      string         // earlier name of BaseURLEnv, which is read if BaseURLEnv is not set; empty for none
	BaseURLDoc         string         // what `base_url` must be; empty where the key is not allowed
	NoPath             bool           // `base_url` has no path, except for the version v1
	Auths              []string       // types of auth that it accepts; empty for none
	ModelKeys          []string       // keys of Model that only this provider and others that list them have
	ModelIDRequired    bool           // `model_id` must be set: the provider does not know the document's ids
	Tools              bool           // its chat models can call tools
	Embeddings         bool           // it has embedding models
	BatchEmbeddings    bool           // its batches can have calls of embedding models
	BatchBucket        *BatchBucket   // what its batches need of a bucket; nil if they need none
	EmbeddingProtocols []string       // forms of requests to its embedding models, one of which the catalogue must have for a model_id; empty for any name
	NoChat             bool           // it has no chat models
	Caching            *PromptCaching // how it caches prompts; nil if it does not, or if its rules are unknown
	Forms              []string       // forms of structured output that its protocol has besides prompt: schema, json_object
}

// BatchBucket is what the batches of a provider need of a bucket.
type BatchBucket struct {
	Scheme     string // of its address, with ://
	Role       bool   // a role that reads and writes it
	LeastCalls int    // of a batch
}

// ClientKind is how calls reach a provider.
type ClientKind int

// The kinds of clients.
const (
	NativeClient  ClientKind = iota + 1 // a client of this module speaks the provider's protocol
	BridgeClient                        // langchaingo does
	LocalClient                         // a library runs the model in this process; `model_id` is its folder
	MockClient                          // no call leaves the process; such models can be named by `offline`
	MissingClient                       // part of the language, but not available yet
)

// KeyPolicy is when a provider needs a key.
type KeyPolicy int

// The key policies.
const (
	NoKey         KeyPolicy = iota // a key has no effect
	OptionalKey                    // calls work without one
	ServiceKey                     // the provider's own service needs one; a server named by `base_url` may not
	AlwaysKey                      // every call needs one
	CloudIdentity                  // calls have the identity of an auth or of the machine, which is found when it is needed
)

// PromptCaching are the rules by which a provider reads the beginning of a prompt from its
// cache, as its documentation of 2025 states them. Some models have other minimums.
type PromptCaching struct {
	Minimum int  // tokens of the shortest beginning that is cached
	Block   int  // tokens by which the cached beginning grows
	Writes  bool // what is written to the cache has the price cache_write
}

// Providers lists the providers in the order in which messages and editors
// propose them. The caller must not change the list.
func Providers() []Provider { return providers() }

var providers = sync.OnceValue(providerRows)

// ProviderModelKeys returns the keys of Model that only some providers have, sorted.
func ProviderModelKeys() []string {
	var keys []string
	for _, p := range Providers() {
		keys = append(keys, p.ModelKeys...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// LookupProvider finds a provider by its name.
func LookupProvider(name string) (Provider, bool) {
	return findRow(Providers(), func(p Provider) bool { return p.Name == name })
}

// ProviderRow finds the row of the model's provider.
func (m *Model) ProviderRow() (Provider, bool) {
	if m.row != nil && m.row.Name == m.Provider {
		return *m.row, true
	}
	return LookupProvider(m.Provider)
}

// IsMock reports whether the model answers without calling a service.
func (m *Model) IsMock() bool {
	p, _ := m.ProviderRow()
	return p.Client == MockClient
}

// KeyAuth is an auth whose secret is one text: the only ones that chat protocols other
// than the protocols of cloud platforms can carry.
type KeyAuth interface {
	Auth
	// ModelKey returns the key and the base URL that it belongs to, empty for any.
	ModelKey() (key Secret, baseURL string)
}

// ModelKey returns the key and the host.
func (a *APIKeyAuth) ModelKey() (key Secret, baseURL string) { return a.APIKey, a.Host }

// ModelKey returns the token, which any server may get.
func (a *BearerTokenAuth) ModelKey() (key Secret, baseURL string) { return a.Token, "" }

// providerRows is the table.
func providerRows() []Provider {
	keys, forms := []string{"api_key", "bearer_token"}, []string{"schema", "json_object"}
	return []Provider{
		{
			Name: "openai", Doc: "OpenAI, and every server that speaks its protocol", Client: NativeClient, Caching: &PromptCaching{Minimum: 1024, Block: 128}, Forms: forms, Tools: true, Embeddings: true, BatchEmbeddings: true, ModelKeys: []string{"api", "batch"},
			Key: ServiceKey, KeyEnv: []string{"OPENAI_API_KEY"}, Auths: keys,
			BaseURL: "https://api.openai.com/v1", BaseURLEnv: "OPENAI_BASE_URL", BaseURLOldEnv: "OPENAI_API_BASE", BaseURLDoc: "the address before `/chat/completions`: OpenAI's, or that of any compatible server",
		},
		{
			Name: "anthropic", Doc: "Anthropic's Messages API", Client: NativeClient, ModelKeys: []string{"batch"}, Caching: &PromptCaching{Minimum: 1024, Block: 1, Writes: true}, Forms: forms[:1], Tools: true,
			Key: ServiceKey, KeyEnv: []string{"ANTHROPIC_API_KEY"}, Auths: keys,
			BaseURL: "https://api.anthropic.com", BaseURLEnv: "ANTHROPIC_BASE_URL", BaseURLDoc: "the address before `/v1/messages`",
		},
		{
			Name: "aws-bedrock", Doc: "Amazon Bedrock", Client: NativeClient, ModelKeys: []string{"batch"}, BatchBucket: &BatchBucket{Scheme: "s3://", Role: true, LeastCalls: 100}, EmbeddingProtocols: []string{"titan", "nova", "cohere", "cohere-v4"}, Caching: &PromptCaching{Minimum: 1024, Block: 1, Writes: true}, Forms: forms[:1], Tools: true, Embeddings: true,
			Key: CloudIdentity, KeyEnv: []string{"AWS_BEARER_TOKEN_BEDROCK"}, Auths: append([]string{"aws"}, keys...),
			BaseURL: "https://bedrock-runtime.REGION.amazonaws.com", BaseURLEnv: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", BaseURLDoc: "the address before `/model`, such as that of a VPC endpoint",
		},
		{
			Name: "azure-openai", Doc: "Azure OpenAI", Client: NativeClient, Caching: &PromptCaching{Minimum: 1024, Block: 128}, Forms: forms, Tools: true, Embeddings: true, ModelKeys: []string{"api", "api_version", "batch", "deployment"},
			Key: CloudIdentity, KeyEnv: []string{"AZURE_OPENAI_API_KEY"}, Auths: append([]string{"azure"}, keys...),
			BaseURL: "https://RESOURCE.openai.azure.com", BaseURLEnv: "AZURE_OPENAI_ENDPOINT", BaseURLDoc: "the endpoint of the resource, before `/openai`; required without the variable",
		},
		{
			Name: "gcp-vertex", Doc: "Google Vertex AI: Gemini, and Anthropic's models", Client: NativeClient, ModelKeys: []string{"batch"}, BatchBucket: &BatchBucket{Scheme: "gs://"}, Forms: forms, Tools: true, Embeddings: true,
			Key: CloudIdentity, Auths: []string{"vertex", "bearer_token"},
			BaseURL: "https://REGION-aiplatform.googleapis.com", BaseURLEnv: "GOOGLE_VERTEX_BASE_URL", BaseURLDoc: "the address before `/v1/projects`",
		},
		{
			Name: "google-ai", Doc: "Google's Gemini API", Client: NativeClient, ModelKeys: []string{"batch"}, Caching: &PromptCaching{Minimum: 1024, Block: 1}, ModelIDRequired: true, Forms: forms, Tools: true, Embeddings: true,
			Key: ServiceKey, KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Auths: keys,
			BaseURL: "https://generativelanguage.googleapis.com", BaseURLEnv: "GOOGLE_GEMINI_BASE_URL", BaseURLDoc: "the address before `/v1beta/models`",
		},
		{
			Name: "mistral", Doc: "Mistral's own service", Client: NativeClient, BatchEmbeddings: true, ModelKeys: []string{"batch"}, ModelIDRequired: true, Forms: forms, Tools: true, Embeddings: true,
			Key: ServiceKey, KeyEnv: []string{"MISTRAL_API_KEY"}, Auths: keys,
			BaseURL: "https://api.mistral.ai/v1", BaseURLDoc: "the address before `/chat/completions`",
		},
		{
			Name: "hugot", Doc: "an ONNX model in the local folder `model_id`, run in this process", Client: LocalClient,
			ModelIDRequired: true, Embeddings: true, NoChat: true,
		},
		{Name: "mock", Doc: "a deterministic offline model that answers by `rules`", Client: MockClient, Forms: forms, Tools: true, Embeddings: true},
		{
			Name: "ollama", Doc: "an Ollama server", Client: NativeClient, ModelIDRequired: true, Forms: forms, Tools: true, Embeddings: true,
			Key: OptionalKey, KeyEnv: []string{"OLLAMA_API_KEY"}, Auths: keys,
			BaseURL: "http://127.0.0.1:11434", BaseURLEnv: "OLLAMA_HOST", BaseURLDoc: "the address before `/api/chat`",
		},
		{
			Name: "langchaingo:huggingface", Doc: "Hugging Face's text generation", Client: BridgeClient,
			Key: AlwaysKey, KeyEnv: []string{"HF_TOKEN", "HUGGINGFACEHUB_API_TOKEN"}, Auths: keys,
			BaseURL: "https://api-inference.huggingface.co", BaseURLDoc: "the address of the inference server",
		},
		{
			Name: "langchaingo:mistral", Doc: "Mistral's own service", Client: BridgeClient,
			Key: AlwaysKey, KeyEnv: []string{"MISTRAL_API_KEY"}, Auths: keys,
			BaseURL: "https://api.mistral.ai", BaseURLDoc: "an address without a path", NoPath: true,
		},
		{
			Name: "langchaingo:ollama", Doc: "an Ollama server", Client: BridgeClient,
			Key: OptionalKey, KeyEnv: []string{"OLLAMA_API_KEY"}, Auths: keys,
			BaseURL: "http://127.0.0.1:11434", BaseURLDoc: "the address before `/api/chat`",
		},
	}
}
