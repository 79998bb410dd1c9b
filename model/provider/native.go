package provider

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/anthropic"
	"github.com/qtype-dev/qtype/model/googleai"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/model/ollama"
	"github.com/qtype-dev/qtype/model/openai"
	"github.com/qtype-dev/qtype/spec"
)

// providerSpec is a provider whose own protocol is spoken.
type providerSpec struct {
	keys     []string                                               // the environment variables of its key, the usual one first
	needsKey bool                                                   // its own service cannot be called without one
	base     string                                                 // the environment variable of its address; empty for none
	address  func(text string) string                               // makes an address of that variable; nil for one that is one
	home     string                                                 // its own address
	open     func(m *spec.Model, c wire.Config) (model.Chat, error) // makes the client
	vectors  string                                                 // the path of its embeddings in OpenAI's form, below the base; "-" for none
}

// providers lists the providers with a protocol, or an address, of their own.
func providers() map[string]providerSpec {
	return map[string]providerSpec{
		"anthropic": {
			keys: []string{"ANTHROPIC_API_KEY"}, needsKey: true, base: "ANTHROPIC_BASE_URL", home: anthropic.DefaultBaseURL, vectors: "-",
			open: func(m *spec.Model, c wire.Config) (model.Chat, error) {
				_, bearer := m.Auth.To.(*spec.BearerTokenAuth)
				return anthropic.New(anthropic.Config{Config: c, Bearer: bearer})
			},
		},
		"google-ai": {
			keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, needsKey: true, base: "GOOGLE_GEMINI_BASE_URL", home: googleai.DefaultBaseURL, vectors: "v1beta/openai",
			open: func(_ *spec.Model, c wire.Config) (model.Chat, error) { return googleai.New(c) },
		},
		"mistral": {
			keys: []string{"MISTRAL_API_KEY"}, needsKey: true, home: openai.MistralBaseURL,
			open: func(_ *spec.Model, c wire.Config) (model.Chat, error) { return openai.NewMistral(c) },
		},
		"ollama": {
			keys: []string{"OLLAMA_API_KEY"}, base: "OLLAMA_HOST", address: ollamaAddress, home: ollama.DefaultBaseURL, vectors: "v1",
			open: func(m *spec.Model, c wire.Config) (model.Chat, error) {
				return ollama.New(ollama.Config{Config: c, ContextWindow: m.ContextWindow})
			},
		},
	}
}

// newNative makes a chat model of a native provider, or its stand-in.
func newNative(m *spec.Model, n providerSpec, opts Options) (model.Chat, error) {
	cfg, needs, err := n.config(m, opts)
	if err != nil {
		return nil, err
	}
	if needs != "" {
		return offlineMock(m, needs)
	}
	made, err := n.open(m, cfg)
	if err != nil {
		return nil, err
	}
	return model.WithRetry(made, callPolicy(m)), nil
}

// config says which server a model calls and with which key, or what the model
// needs to be called at all.
func (n providerSpec) config(m *spec.Model, opts Options) (cfg wire.Config, needs string, err error) {
	cred, err := authCredential(m, opts)
	if err != nil {
		return cfg, "", err
	}
	for _, variable := range n.keys {
		if v := strings.TrimSpace(opts.Getenv(variable)); cred.name == "" && v != "" {
			cred = credential{key: v, name: variable}
		}
	}
	base := cmp.Or(m.BaseURL, cred.host)
	if base == "" && n.base != "" {
		if base = opts.Getenv(n.base); base != "" && n.address != nil {
			base = n.address(base)
		}
	}
	if n.needsKey && cred.key == "" && base == "" {
		needs = "set " + n.keys[0] + " or give it an auth"
	}
	return wire.Config{Info: model.Describe(m), BaseURL: cmp.Or(base, n.home), Key: cred.key, Credential: cmp.Or(cred.name, n.keys[0]),
		Params: m.InferenceParams, HTTP: opts.HTTP}, needs, nil
}

// nativeEmbedder makes an embedding model of a native provider, by its door for
// OpenAI's protocol.
func nativeEmbedder(m *spec.EmbeddingModel, n providerSpec, opts Options) (model.Embedder, error) {
	if n.vectors == "-" {
		return nil, fmt.Errorf("model %s: provider %s has no embedding models", m.ID, m.Provider)
	}
	cfg, needs, err := n.config(&m.Model, opts)
	if err != nil {
		return nil, err
	}
	if at, err := url.Parse(cfg.BaseURL); err == nil && strings.Trim(at.Path, "/") == "" {
		cfg.BaseURL = at.JoinPath(n.vectors).String()
	}
	return embedderOf(m, cfg, needs)
}

// ollamaAddress reads OLLAMA_HOST as Ollama does: a host, a host and a port, or
// an address; a server that listens everywhere is asked here.
func ollamaAddress(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return text
	}
	host, port := at.Hostname(), at.Port()
	if port == "" && at.Scheme == "http" {
		port = "11434"
	}
	if host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if port != "" {
		at.Host = net.JoinHostPort(host, port)
	}
	return at.String()
}
