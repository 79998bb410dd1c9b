package provider

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/model/ollama"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Clients are the clients of the providers that a program can call, by their names in
// spec.Providers.
type Clients map[string]Client

// Client makes the models of one provider. Mocks need none.
type Client struct {
	// Local makes an embedding model that runs in this process; params are the declared inference
	// parameters. It is nil for a provider that is called over the network.
	Local func(info model.Info, params map[string]any) (model.Embedder, error)

	Chat     func(spec.Model, wire.Config, time.Duration) (model.Chat, error) // nil where the provider has no chat models
	Embedder func(spec.Model, wire.Config) (model.Embedder, error)            // nil where the provider has no embedding models
	Batches  func(spec.Model, wire.Config) (wire.Batches, error)              // of chat models; nil where the provider has no batches

	// Background makes calls in the background within a time; nil where the provider does not. Such a call is a batch of its own.
	Background func(c wire.Config, window string) (wire.Batches, error)

	// Account completes the configuration of a model of a cloud: its address, where that has parts to replace, and the
	// credentials of calls. It calls nothing. missing is an instruction where the document and the environment have not
	// enough for a call. It is nil for providers with keys only.
	Account func(m *spec.Model, c *wire.Config, opts Options) (missing string, err error)

	envBaseURL func(text string) string // reads the provider's variable of the base URL; nil where that is a URL
}

// Own returns the client of a provider of another module. A function is nil where the provider has no models of its kind.
func Own(chat func(model.Connection) (model.Chat, error), embedder func(model.Connection) (model.Embedder, error)) Client {
	connection := func(c wire.Config) model.Connection {
		return model.Connection{Info: c.Info, BaseURL: c.BaseURL, Key: c.Key, Params: c.Params, Headers: c.Headers, HTTP: c.HTTP}
	}
	return Client{
		Chat: func(_ spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
			return made(chat, connection(c))
		},
		Embedder: func(_ spec.Model, c wire.Config) (model.Embedder, error) { return made(embedder, connection(c)) },
	}
}

// made calls the function of another module that makes a client. A panic, and nothing, are errors.
func made[T comparable](newClient func(model.Connection) (T, error), to model.Connection) (client T, err error) {
	err = parts.Guard("its provider", func() (err error) {
		client, err = newClient(to)
		return err
	})
	if err == nil && client == *new(T) {
		err = errors.New("its provider returned no client")
	}
	if err != nil {
		return client, fmt.Errorf("model %s: %w", to.Info.ID, err)
	}
	return client, nil
}

// Core returns the table of the providers of the core. The caller may add others.
func Core() Clients {
	return Clients{
		"anthropic": {Chat: func(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
			return anthropic.New(anthropicConfig(m, c))
		}, Batches: func(m spec.Model, c wire.Config) (wire.Batches, error) {
			return anthropic.NewBatches(anthropicConfig(m, c))
		}},
		"azure-openai": {Chat: azureChat, Embedder: func(m spec.Model, c wire.Config) (model.Embedder, error) {
			return openai.NewAzureEmbedder(azureConfig(m, c))
		}, Batches: func(m spec.Model, c wire.Config) (wire.Batches, error) {
			return openai.NewAzureBatches(azureConfig(m, c))
		}, Account: azureAccount},
		"gcp-vertex": {Chat: vertexChat, Embedder: func(m spec.Model, c wire.Config) (model.Embedder, error) {
			return googleai.NewVertexEmbedder(vertexConfig(m, c))
		}, Account: googleAccount, Batches: func(m spec.Model, c wire.Config) (wire.Batches, error) {
			return googleai.NewVertexBatches(googleai.VertexBatchConfig{VertexConfig: vertexConfig(m, c), Folder: m.Batch.Bucket, Publisher: publisher(m)})
		}},
		"google-ai": {Chat: plain(googleai.New), Embedder: embeddingsAt("v1beta", "openai"), Batches: plainBatches(googleai.NewBatches)},
		"mistral":   {Chat: plain(openai.NewMistral), Embedder: embeddings, Batches: plainBatches(openai.NewMistralBatches)},
		"ollama": {
			Chat: func(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
				return ollama.New(ollama.Config{Config: c, ContextWindow: m.ContextWindow})
			},
			Embedder: embeddingsAt("v1", ""), envBaseURL: ollama.HostURL,
		},
		"openai": {Chat: openaiChat, Embedder: embeddings, Batches: plainBatches(openai.NewBatches), Background: openai.NewBackground},
	}
}

func anthropicConfig(m spec.Model, c wire.Config) anthropic.Config {
	return anthropic.Config{Config: c, Cache: m.PromptCache, Bearer: isToken(m)}
}

// core is used by Options without a table.
var core = sync.OnceValue(Core)

// isToken reports whether the key of a model is a token.
func isToken(m spec.Model) bool { return spec.TypeName(m.Auth.To) == "bearer_token" }

// plain adapts a client that needs nothing beyond the common settings.
func plain[C model.Chat](open func(wire.Config) (C, error)) func(spec.Model, wire.Config, time.Duration) (model.Chat, error) {
	return func(_ spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) { return open(c) }
}

// plainBatches adapts a batch API that needs nothing beyond the common settings.
func plainBatches(open func(wire.Config) (wire.Batches, error)) func(spec.Model, wire.Config) (wire.Batches, error) {
	return func(_ spec.Model, c wire.Config) (wire.Batches, error) { return open(c) }
}

// embeddings makes embedding models by OpenAI's protocol at the base URL itself.
func embeddings(_ spec.Model, c wire.Config) (model.Embedder, error) { return openai.NewEmbedder(c) }

// embeddingsAt makes embedding models by OpenAI's protocol, which these providers serve
// below a version and a path. A base URL that ends with a version has another one.
func embeddingsAt(version, under string) func(spec.Model, wire.Config) (model.Embedder, error) {
	return func(_ spec.Model, c wire.Config) (model.Embedder, error) {
		if base, err := url.Parse(c.BaseURL); err == nil && !strings.HasSuffix(base.Path, "/openai") {
			if !wire.IsVersion(path.Base(base.Path)) {
				base = base.JoinPath(version)
			}
			c.BaseURL = base.JoinPath(under).String()
		}
		return openai.NewEmbedder(c)
	}
}

// newMock makes a mock, for itself or in place of the model replaced. It answers
// repeated calls alike, so it is retried only where the document configures retries.
func newMock(m, replaced *spec.Model, opts Options) (model.Chat, error) {
	made, err := mock.New(m, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	isSlow := slices.ContainsFunc(m.Rules, func(r *spec.MockRule) bool { return r != nil && r.Delay > 0 }) // it may exceed the timeout
	if m.Retry == nil && m.RateLimit == nil && m.CircuitBreaker == nil && !isSlow {
		return WithAnswers(m, opts.Wrap(made), opts), nil
	}
	p := withMockBreaker(callPolicy(m, mockServer(m), opts), m, opts)
	if m.Retry == nil {
		p.MaxAttempts = 1
	}
	return WithAnswers(m, model.WithRetry(opts.Wrap(made), p), opts), nil
}

// mockServer identifies the server that a mock replaces: each mock has another one.
func mockServer(m *spec.Model) string { return "mock " + m.ID }

// withMockBreaker adds the circuit breaker that a mock declares. Without a declaration it has none, so that a
// mock can fail as often as a test wants.
func withMockBreaker(p model.CallPolicy, m *spec.Model, opts Options) model.CallPolicy {
	if m.CircuitBreaker == nil {
		return p
	}
	return withBreaker(p, m, mockServer(m), opts)
}

// mockEmbedder makes the embedding model m of a mock, which is m itself or replaces it.
func mockEmbedder(m *spec.EmbeddingModel, by *spec.Model, opts Options) model.Embedder {
	var replaced *spec.Model
	if by != &m.Model {
		replaced = &m.Model
	}
	made := opts.WrapEmbedder(mock.NewEmbedder(m, mock.Options{Replaces: replaced, ID: by.ID}))
	p := model.CallPolicy{Limit: callPolicy(by, mockServer(by), opts).Limit}
	return withEmbeddingCost(by, model.WithBatches(made, model.Batch{}, withMockBreaker(p, by, opts)))
}

// offlineMock returns the mock that a model names by `offline`; a
// CredentialsError with the missing credentials where it names none.
func offlineMock(m *spec.Model, missing string) (*spec.Model, error) {
	other := m.OfflineMock()
	switch {
	case spec.IsEmpty(&m.Offline):
		return nil, &CredentialsError{Model: m.ID, Needs: missing}
	case other == nil:
		return nil, fmt.Errorf("model %s: offline names %s, which is not a model", m.ID, m.Offline.ID)
	case !other.IsMock():
		return nil, fmt.Errorf("model %s: offline must name a mock model; %s is of provider %s", m.ID, other.ID, other.Provider)
	}
	return other, nil
}

// HasFlex reports whether a model requests the tier flex if that is wanted: it has the tier, and the document names none.
func HasFlex(m *spec.Model) bool {
	known, _ := m.Known()
	return known.HasFlex() && m.InferenceParams["service_tier"] == nil
}

// useFlex requests the tier flex if the model has it, unless the document names a tier. Calls may wait for minutes, and
// are refused without costs while the provider has no room, so that they have more time, and more attempts if the document
// does not declare how many.
func (c *client) useFlex(m *spec.Model, p model.CallPolicy) model.CallPolicy {
	const (
		timeout  = 15 * time.Minute
		attempts = 10
		maxDelay = time.Minute
	)
	if !HasFlex(m) {
		return p
	}
	params := maps.Clone(c.config.Params)
	if params == nil {
		params = map[string]any{}
	}
	params["service_tier"] = catalogue.TierFlex
	c.config.Params = params
	if p.Timeout = max(p.Timeout, timeout); m.Retry == nil {
		p.MaxAttempts, p.MaxDelay = attempts, maxDelay
	}
	return p
}
