// Package provider makes the chat models and embedding models that a document declares: it chooses
// the client for the provider, finds the credentials and adds patience.
package provider

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/langchain"
	"github.com/qtype-dev/qtype/model/mock"
	"github.com/qtype-dev/qtype/model/openai"
	"github.com/qtype-dev/qtype/spec"
)

// The environment variables that openai models read.
const (
	keyVariable  = "OPENAI_API_KEY"
	baseVariable = "OPENAI_BASE_URL"
)

// Options says where credentials come from and how servers are reached.
type Options struct {
	Getenv func(name string) string          // the environment; os.Getenv where it is nil
	HTTP   *http.Client                      // carries the calls; nil means one with sane timeouts
	Secret func(spec.Secret) (string, error) // resolves references to a secret manager; nil where there is none
}

// withDefaults has the defaults in place of what is left out.
func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.HTTP == nil {
		o.HTTP = newHTTP()
	}
	return o
}

// NotAvailableError says that the language knows a provider that this version cannot call.
type NotAvailableError struct {
	Model    string // the model's id in the document
	Provider string // the provider that it names
}

// Error names the model and the provider.
func (e *NotAvailableError) Error() string {
	return fmt.Sprintf("model %s: provider %s is not available yet", e.Model, e.Provider)
}

// CredentialsError says that a model has neither credentials nor a server that needs none.
type CredentialsError struct {
	Model string // the model's id in the document
	Needs string // what would do
}

// Error names the model and what would do.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("model %s: no credentials: %s", e.Model, e.Needs)
}

// New makes the model. Nothing is called yet; an error means that the document
// or the environment lacks something, such as credentials.
func New(m *spec.Model, opts Options) (model.Chat, error) {
	opts = opts.withDefaults()
	bridged, isBridged := strings.CutPrefix(m.Provider, langchain.Prefix)
	switch {
	case m.Provider == "openai":
		return newOpenAI(m, opts)
	case m.Provider == "mock":
		return newMock(m, nil)
	case isBridged:
		return newBridge(m, bridged, opts)
	}
	if native, ok := providers()[m.Provider]; ok {
		return newNative(m, native, opts)
	}
	return nil, &NotAvailableError{Model: m.ID, Provider: m.Provider}
}

// newMock makes a mock, for itself or in another model's place. It answers a
// repeated call alike, so it is repeated only where the document says so.
func newMock(m, standsFor *spec.Model) (model.Chat, error) {
	made, err := mock.New(m, mock.Options{StandsFor: standsFor})
	if err != nil {
		return nil, err
	}
	if m.Retry == nil && m.RateLimit == nil {
		return made, nil
	}
	p := callPolicy(m)
	if m.Retry == nil {
		p.MaxAttempts = 1
	}
	return model.WithRetry(made, p), nil
}

func newOpenAI(m *spec.Model, opts Options) (model.Chat, error) {
	cfg, needs, err := openAIConfig(m, opts)
	if err != nil {
		return nil, err
	}
	if needs != "" {
		return offlineMock(m, needs)
	}
	made, err := openai.New(cfg)
	if err != nil {
		return nil, err
	}
	return model.WithRetry(made, callPolicy(m)), nil
}

// openAIConfig says which server an openai model calls and with which key, or
// what the model needs to be called at all.
func openAIConfig(m *spec.Model, opts Options) (cfg openai.Config, needs string, err error) {
	cred, err := openAICredential(m, opts)
	if err != nil {
		return cfg, "", err
	}
	base := cmp.Or(m.BaseURL, cred.host, opts.Getenv(baseVariable))
	if base == "" && cred.key == "" {
		needs = "set " + keyVariable + ", give it an auth, or a base_url"
	}
	return openai.Config{Info: model.Describe(m), BaseURL: cmp.Or(base, openai.DefaultBaseURL), Key: cred.key, Credential: cred.name,
		Params: m.InferenceParams, HTTP: opts.HTTP}, needs, nil
}

func newBridge(m *spec.Model, name string, opts Options) (model.Chat, error) {
	if !langchain.Has(name) {
		return nil, &NotAvailableError{Model: m.ID, Provider: m.Provider}
	}
	key, err := authCredential(m, opts)
	if err != nil {
		return nil, err
	}
	for _, variable := range langchain.KeyVariables(name) {
		if v := opts.Getenv(variable); key.key == "" && v != "" {
			key = credential{key: v, name: variable}
		}
	}
	if langchain.NeedsKey(name) && key.key == "" {
		return offlineMock(m, "set "+langchain.KeyVariables(name)[0]+" or give it an auth")
	}
	made, err := langchain.New(name, langchain.Config{Info: model.Describe(m), BaseURL: cmp.Or(m.BaseURL, key.host), Key: key.key,
		Credential: key.name, Params: m.InferenceParams, Timeout: callPolicy(m).Timeout, HTTP: opts.HTTP})
	if err != nil {
		return nil, err
	}
	return model.WithRetry(made, callPolicy(m)), nil
}

// offlineMock is the mock that a model names for the time that there are no
// credentials; without one that is an error, which says what the model needs.
func offlineMock(m *spec.Model, needs string) (model.Chat, error) {
	other, err := offline(m, needs)
	if err != nil {
		return nil, err
	}
	return newMock(other, m)
}

// offline is the mock model that a model names for the time without credentials.
func offline(m *spec.Model, needs string) (*spec.Model, error) {
	other := m.Offline.To
	switch {
	case m.Offline.IsZero():
		return nil, &CredentialsError{Model: m.ID, Needs: needs}
	case other == nil:
		return nil, fmt.Errorf("model %s: offline names %s, which is not a model", m.ID, m.Offline.ID)
	case other.Provider != "mock":
		return nil, fmt.Errorf("model %s: offline must name a mock model; %s is of provider %s", m.ID, other.ID, other.Provider)
	}
	return other, nil
}

// callPolicy is the declared time limit and repetition; the language's defaults
// hold for a model that a Go program made without them.
func callPolicy(m *spec.Model) model.CallPolicy {
	p := model.CallPolicy{Timeout: 2 * time.Minute, MaxAttempts: 3, InitialDelay: 500 * time.Millisecond, MaxDelay: 30 * time.Second}
	if m.Timeout > 0 {
		p.Timeout = time.Duration(m.Timeout)
	}
	if l := m.RateLimit; l != nil {
		p.Limit = model.NewLimiter(l.RequestsPerMinute, l.TokensPerMinute)
	}
	if r := m.Retry; r != nil {
		p.MaxAttempts = max(r.MaxAttempts, 1)
		if r.InitialDelay > 0 {
			p.InitialDelay = time.Duration(r.InitialDelay)
		}
		if r.MaxDelay > 0 {
			p.MaxDelay = time.Duration(r.MaxDelay)
		}
	}
	return p
}
