// Package provider makes the chat models and embedding models that a document
// declares: it chooses the client of the provider, finds the credentials, and
// adds the time limit, the retries and the rate limit.
package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment, the transport and the secrets of models.
type Options struct {
	Getenv  func(name string) string // the environment of the user; nil means os.Getenv
	Key     func(name string) string // the environment for keys, which may be one of the document; nil means Getenv
	Clients Clients                  // the providers that can be called; nil for those of the core

	HTTP   *http.Client                      // carries the calls; nil means a client with default timeouts
	Calls  int                               // the number of calls at once, and so of connections to a server that are kept open; not used with HTTP; 0 means 64
	Secret func(spec.Secret) (string, error) // resolves references to a secret manager; nil where there is none
	AWS    awsauth.Builder                   // signs with AWS identities; nil in a program without this part

	Policy *trust.Policy // what the document may reach; nil allows everything. Getenv is that of the user: credentials go to the servers of their provider

	Warn    func(string)       // receives warnings, one line each; nil for none
	Traffic *model.Traffic     // limits and breakers that models share; nil for those of one model
	Forms   *model.SchemaForms // the forms of structured output that servers accept; nil to learn them for each model

	// Batches returns the HTTP client of a model whose calls are made in batches by its provider; nil to make them
	// at once. next makes the calls that batches do not have.
	Batches func(m *spec.Model, api wire.Batches, next *http.Client) *http.Client
	// IsBatched reports whether a call is made in a batch, where others of the same model are made at once; nil if all are.
	IsBatched func(ctx context.Context) bool

	Window string // of calls in the background, which are made so instead of in batches; empty for batches

	Buckets remotefs.Buckets // the services of the buckets that batches need; nil for none

	Flex bool // requests the tier flex for chat models that have it: cheaper answers, which may take minutes

	Wrap         func(model.Chat) model.Chat         // replaces the client below the retries, so that it sees each attempt; nil for none
	WrapEmbedder func(model.Embedder) model.Embedder // the same for embedding models
}

// defaultCalls is how many calls there may be at once, unless the options have a number.
const defaultCalls = 64

// withDefaults returns o with defaults for the fields that are not set.
func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Clients == nil {
		o.Clients = core()
	}
	if o.Key == nil {
		o.Key = o.Getenv
	}
	if o.HTTP == nil {
		// No timeout for the answer: a model may think for a minute before its
		// first byte, and each call carries the limit that the document declares.
		o.HTTP = &http.Client{Transport: httpx.Transport(cmp.Or(o.Calls, defaultCalls))}
	}
	if o.Traffic == nil {
		o.Traffic = &model.Traffic{}
	}
	if o.Wrap == nil {
		o.Wrap = func(m model.Chat) model.Chat { return m }
	}
	if o.WrapEmbedder == nil {
		o.WrapEmbedder = func(m model.Embedder) model.Embedder { return m }
	}
	return o
}

// CredentialsError reports a model with neither credentials nor a server that needs none.
type CredentialsError struct {
	Model string // the model's id in the document
	Needs string // how to provide them
}

// Error names the model and how to provide credentials.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("model %s: no credentials: %s", e.Model, e.Needs)
}

// New makes a chat model. It calls nothing; an error means that the document or
// the environment lacks something, such as credentials.
func New(m *spec.Model, opts Options) (model.Chat, error) {
	opts = opts.withDefaults()
	if m.IsMock() {
		return newMock(m, nil, opts)
	}
	if _, problem := m.Conflict(); problem != "" {
		return nil, fmt.Errorf("model %s: %s", m.ID, problem)
	}
	client, err := prepare(m, opts)
	if err != nil {
		return nil, err
	}
	if client.missing != "" {
		other, err := offlineMock(m, client.missing)
		if err != nil {
			return nil, err
		}
		return newMock(other, m, opts)
	}
	other := *client
	made, inBatches, err := client.chat(m, opts)
	if err == nil && inBatches && opts.IsBatched != nil {
		opts.Batches = nil
		var atOnce model.Chat
		atOnce, _, err = other.chat(m, opts)
		made = chosenChat{atOnce, made, opts.IsBatched}
	}
	if err != nil {
		return nil, err
	}
	return WithAnswers(m, made, opts), nil
}

// chat makes a model with its retries, and reports whether its calls are made in batches.
func (c *client) chat(m *spec.Model, opts Options) (made model.Chat, inBatches bool, err error) {
	if inBatches, err = c.useBatches(m, opts); err != nil {
		return nil, false, err
	}
	policy := callPolicy(m, c.limitKey(), opts)
	if opts.Flex && !inBatches {
		policy = c.useFlex(m, policy)
	}
	if made, err = c.Chat(*m, c.config, policy.Timeout); err != nil {
		return nil, false, err
	}
	if inBatches {
		return model.WithRetry(opts.Wrap(batchedChat{made, BatchTier(opts.Window)}), batchPolicy), true, nil
	}
	policy = withBreaker(policy, m, made.Info().Endpoint, opts)
	return model.WithRetry(opts.Wrap(made), policy), false, nil
}

// WithAnswers adds what the document declares about answers: their form, and what happens
// to incomplete ones.
func WithAnswers(m *spec.Model, c model.Chat, opts Options) model.Chat {
	row, _ := m.ProviderRow()
	if !c.Info().Mock { // whose usage is a count
		c = model.WithEstimates(c)
	}
	c = withCost(m, c, opts.Warn)
	c = model.WithSchemaForm(c, model.SchemaForm(m.StructuredOutput), row.Forms, opts.Forms)
	return model.WithTruncation(c, m.OnTruncation, opts.Warn)
}

// NewEmbedder makes an embedding model. Like New it calls nothing.
func NewEmbedder(m *spec.EmbeddingModel, opts Options) (model.Embedder, error) {
	opts = opts.withDefaults()
	if m.IsMock() {
		return mockEmbedder(m, &m.Model, opts), nil
	}
	if _, problem := m.Conflict(); problem != "" {
		return nil, fmt.Errorf("model %s: %s", m.ID, problem)
	}
	client, err := prepare(&m.Model, opts)
	switch {
	case err != nil:
		return nil, err
	case client.missing != "":
		by, err := offlineMock(&m.Model, client.missing)
		if err != nil {
			return nil, err
		}
		return mockEmbedder(m, by, opts), nil
	}
	client.config.Info = model.DescribeEmbedder(m)
	if row, _ := m.ProviderRow(); !row.BatchEmbeddings || opts.Window != "" {
		client.Batches = nil
	}
	other := *client
	made, inBatches, err := client.embedder(m, opts)
	if err == nil && inBatches && opts.IsBatched != nil {
		opts.Batches = nil
		var atOnce model.Embedder
		atOnce, _, err = other.embedder(m, opts)
		made = chosenEmbedder{atOnce, made, opts.IsBatched}
	}
	if err != nil {
		return nil, err
	}
	return withEmbeddingCost(&m.Model, made), nil
}

// embedder makes an embedding model with its retries, and reports whether its calls are made in batches.
func (c *client) embedder(m *spec.EmbeddingModel, opts Options) (_ model.Embedder, inBatches bool, err error) {
	if inBatches, err = c.useBatches(&m.Model, opts); err != nil {
		return nil, false, err
	}
	made, err := c.embed(m)
	if err != nil {
		return nil, false, err
	}
	var batch model.Batch
	if limited, ok := made.(interface{ Batch() model.Batch }); ok {
		batch = limited.Batch()
	}
	made = withPrefixes(made)
	if inBatches {
		return model.WithBatches(opts.WrapEmbedder(batchedEmbedder{made}), batch, batchPolicy), true, nil
	}
	policy := withBreaker(callPolicy(&m.Model, c.limitKey(), opts), &m.Model, made.Info().Endpoint, opts)
	return model.WithBatches(opts.WrapEmbedder(made), batch, policy), false, nil
}

// client is the client of a model's provider and what it makes the model from.
type client struct {
	Client
	config  wire.Config
	missing string // the credentials that calls would need, as an instruction; empty where they can be made
}

// embed makes an embedding model.
func (c *client) embed(m *spec.EmbeddingModel) (model.Embedder, error) {
	if c.Local != nil {
		return c.Local(c.config.Info, c.config.Params)
	}
	return c.Embedder(m.Model, c.config)
}

// limitKey is the key of the rate limit: providers count the calls of a model by a
// credential.
func (c *client) limitKey() string {
	sum := sha256.Sum256([]byte(c.config.Key))
	return fmt.Sprintf("%s %s %x", c.config.BaseURL, c.config.Info.Name, sum[:8])
}

// prepare finds the provider, the server and the key of a model.
func prepare(m *spec.Model, opts Options) (*client, error) {
	if missing := spec.CheckAvailable(m); missing != nil {
		return nil, missing
	}
	if err := opts.Policy.Provider(m.Provider); err != nil {
		return nil, authError(m, err)
	}
	row, _ := m.ProviderRow()
	build, found := opts.Clients[m.Provider]
	if !found {
		return nil, fmt.Errorf("model %s: %w", m.ID, &parts.MissingError{Kind: parts.Provider, Name: m.Provider})
	}
	if row.Client == spec.LocalClient {
		if err := opts.Policy.Read(m.Name()); err != nil {
			return nil, authError(m, err)
		}
		return &client{Client: build, config: wire.Config{Info: model.Describe(m), Params: m.InferenceParams}}, nil
	}
	cred, err := findCredential(m, row, opts)
	if err != nil {
		return nil, err
	}
	base, variable := cmp.Or(m.BaseURL, hostAddress(withOwnPath(cred.host, row.BaseURL), row.BaseURL)), ""
	if base == "" {
		if base, variable = environmentBaseURL(m, row, opts); base != "" && build.envBaseURL != nil {
			base = build.envBaseURL(base)
		}
	}
	base = withOwnPath(base, row.BaseURL)
	params, err := modelparams.Of(m)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.ID, err)
	}
	headers, err := headersOf(m, opts)
	if err != nil {
		return nil, err
	}
	c := &client{Client: build, config: wire.Config{Info: model.Describe(m), BaseURL: cmp.Or(base, row.BaseURL), BaseURLEnv: variable, Key: cred.key,
		Credential: cmp.Or(cred.name, firstOf(row.KeyEnv)), Params: params, Headers: headers, HTTP: opts.HTTP,
		Own: m.OwnService(), NoCache: m.PromptCache == "none"}}
	if cred.key == "" {
		switch {
		case row.Key == spec.AlwaysKey:
			c.missing = fmt.Sprintf("set %s or give it an auth", row.KeyEnv[0])
		case row.Key == spec.ServiceKey && base == "":
			c.missing = fmt.Sprintf("set %s, give it an auth, or a base_url", row.KeyEnv[0])
		}
	}
	if build.Account != nil {
		if base != "" {
			c.config.BaseURL = base
		}
		if c.missing, err = build.Account(m, &c.config, opts); err != nil {
			return nil, authError(m, err)
		}
	}
	return c, nil
}

// headersOf returns the headers that a model declares, with their secrets; nil for none.
func headersOf(m *spec.Model, opts Options) (http.Header, error) {
	if len(m.Headers) == 0 {
		return nil, nil
	}
	headers := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) { // sorted, so that the error is always the same
		value, err := m.Headers[name].Resolve(opts.Secret)
		if err != nil {
			return nil, fmt.Errorf("model %s: header %s: %w", m.ID, name, err)
		}
		if !spec.IsHeaderValue(value) {
			return nil, fmt.Errorf("model %s: the header %s has a value that HTTP cannot carry", m.ID, name)
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// environmentBaseURL returns the base URL that the environment sets for a provider, and the
// name of the variable; both are empty if it sets none.
func environmentBaseURL(m *spec.Model, row spec.Provider, opts Options) (base, variable string) {
	if row.BaseURLEnv == "" {
		return "", ""
	}
	if base = opts.Getenv(row.BaseURLEnv); base != "" {
		return base, row.BaseURLEnv
	}
	if row.BaseURLOldEnv == "" {
		return "", ""
	}
	if base = opts.Getenv(row.BaseURLOldEnv); base == "" {
		return "", ""
	}
	if opts.Warn != nil {
		opts.Warn(fmt.Sprintf("model %s: %s is the earlier name of %s and is used as such; set %s", m.ID, row.BaseURLOldEnv, row.BaseURLEnv, row.BaseURLEnv))
	}
	return base, row.BaseURLOldEnv
}

// hostAddress returns the address of the host of an auth: without a path, it has that of the provider's own
// address, such as /v1, as in QType (Python).
func hostAddress(host, own string) string {
	given, err := url.Parse(host)
	service, errOwn := url.Parse(own)
	if host == "" || err != nil || errOwn != nil || strings.Trim(given.Path, "/") != "" {
		return host
	}
	given.Path = service.Path
	return given.String()
}

// withOwnPath returns the provider's own address for its server without a path, such as
// https://api.openai.com; other addresses are unchanged.
func withOwnPath(base, own string) string {
	given, err := url.Parse(base)
	service, errOwn := url.Parse(own)
	if err == nil && errOwn == nil && given.Scheme == service.Scheme && strings.EqualFold(given.Host, service.Host) && strings.Trim(given.Path, "/") == "" {
		return own
	}
	return base
}

// firstOf returns the first text, empty for none.
func firstOf(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}
