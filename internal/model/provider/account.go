package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// googleAccount adds a token of a Google identity to calls. The address gets the region.
func googleAccount(m *spec.Model, c *wire.Config, opts Options) (missing string, err error) {
	account, _ := m.Auth.To.(*spec.VertexAuth)
	getenv, policy := opts.Identity(m)
	if err := googleauth.Allowed(policy, account); err != nil {
		return "", err
	}
	id, err := googleauth.New(account, getenv)
	if err != nil {
		return "", err
	}
	project, err := id.Project()
	if err != nil {
		return err.Error(), nil //nolint:nilerr // an instruction, so that an offline mock can replace the model
	}
	region := id.Region()
	c.BaseURL = strings.Replace(c.BaseURL, "REGION-", strings.TrimPrefix(region+"-", "global-"), 1)
	c.Account = wire.Account{Project: project, Region: region}
	authorize := id.Authorize
	if key := c.Key; key != "" {
		authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+key)
			return nil
		}
	} else {
		c.Credential = id.Name()
		c.Authorize = func(req *http.Request, _ []byte) error { return id.Authorize(req) }
	}
	if m.Auth.To != nil {
		c.Bucket = &remotefs.Identity{Authorize: authorize}
	}
	return "", nil
}

func vertexConfig(_ spec.Model, c wire.Config) googleai.VertexConfig {
	return googleai.VertexConfig{Config: c, Project: c.Account.Project, Location: c.Account.Region}
}

// vertexChat makes a model of Google or of Anthropic, by its name.
func vertexChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	config := vertexConfig(m, c)
	if p := publisher(m); p == "anthropic" {
		return anthropic.NewVertex(anthropic.Config{Config: c, Cache: m.PromptCache}, config.Path(p))
	}
	return googleai.NewVertex(config)
}

// publisher returns the publisher of a model in Vertex AI.
func publisher(m spec.Model) string {
	if modelparams.VertexChat(m.Name()) == modelparams.VertexMessages {
		return "anthropic"
	}
	return "google"
}

// azureAccount adds a token of a Microsoft identity to calls, unless there is an API key.
func azureAccount(m *spec.Model, c *wire.Config, opts Options) (missing string, err error) {
	if strings.Contains(c.BaseURL, "RESOURCE") {
		return "set AZURE_OPENAI_ENDPOINT, or base_url to the endpoint of the resource", nil
	}
	if c.Key != "" {
		return "", nil
	}
	account, _ := m.Auth.To.(*spec.AzureAuth)
	getenv, policy := opts.Identity(m)
	id, err := azureauth.New(account, azureauth.Options{Getenv: getenv, Secret: opts.Secret, Policy: policy})
	if err != nil {
		return "", err
	}
	c.Credential = id.Name()
	c.Authorize = func(req *http.Request, _ []byte) error {
		return id.Authorize(req, azureResource(req.URL.Hostname()))
	}
	return "", nil
}

// azureResource returns the resource of tokens for a host: endpoints of projects in Azure AI Foundry
// have another one than Azure OpenAI.
func azureResource(host string) string {
	if strings.HasSuffix(strings.ToLower(host), ".services.ai.azure.com") {
		return "https://ai.azure.com"
	}
	return "https://cognitiveservices.azure.com"
}

func azureConfig(m spec.Model, c wire.Config) openai.AzureConfig {
	return openai.AzureConfig{Config: c, Bearer: isToken(m), Deployment: cmp.Or(m.Deployment, m.Name()), Version: m.APIVersion}
}

func azureChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	if m.UsesResponses() {
		return openai.NewAzureResponses(azureConfig(m, c))
	}
	return openai.NewAzure(azureConfig(m, c))
}

// openaiChat makes a model of the API that the document declares, or that the model needs.
func openaiChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	if m.UsesResponses() {
		return openai.NewResponses(c)
	}
	return openai.New(c)
}

// credential is the key of a model.
type credential struct {
	key  string // the secret; empty for none
	name string // id of the auth or name of the environment variable; empty for none
	host string // the base URL that the key belongs to; empty for any
}

// findCredential reads the key of a model: the key of its auth, else the value of the
// provider's first environment variable that is set.
func findCredential(m *spec.Model, row spec.Provider, opts Options) (credential, error) {
	c, err := authCredential(m, row, opts)
	if err != nil || c.name != "" {
		opts.warnOfShortKey(m, c)
		return c, err
	}
	for _, variable := range row.KeyEnv {
		if key := strings.TrimSpace(opts.Key(variable)); key != "" {
			if err := opts.Policy.Credential(variable, m.BaseURL, isOwnServer(m, row)); err != nil {
				return credential{}, authError(m, err)
			}
			if problem := spec.KeyProblem(key); problem != "" {
				return credential{}, authError(m, fmt.Errorf("the environment variable %s %s", variable, problem))
			}
			c = credential{key: key, name: variable}
			opts.warnOfShortKey(m, c)
			return c, nil
		}
	}
	return c, nil
}

// warnOfShortKey warns of a key that cannot be replaced in texts.
func (o Options) warnOfShortKey(m *spec.Model, c credential) {
	if n := len(c.key); n > 0 && n < redact.MinSecret && o.Warn != nil {
		o.Warn(fmt.Sprintf("model %s: the key of %s has %s: it is too short to be hidden in logs", m.ID, c.name, textfmt.Count(n, "character")))
	}
}

// isOwnServer reports whether a model is called at a server of its provider, or at one that
// the environment of the user names, and not at one that the document chose.
func isOwnServer(m *spec.Model, row spec.Provider) bool {
	if m.BaseURL == "" {
		return true
	}
	chosen, err := url.Parse(m.BaseURL)
	own, err2 := url.Parse(row.BaseURL)
	return err == nil && err2 == nil && chosen.Scheme == own.Scheme && own.Host != "" && strings.EqualFold(chosen.Host, own.Host)
}

// Identity returns the environment and the policy for an identity of a cloud: without an
// auth and an address of the document, it is that of the user, for a server of the provider.
func (o Options) Identity(m *spec.Model) (getenv func(string) string, p *trust.Policy) {
	if m.Auth.To == nil && m.BaseURL == "" {
		return o.Getenv, nil
	}
	return o.Policy.Getenv(o.Getenv), o.Policy
}

// authCredential reads the auth of a model; the zero credential where it has none.
func authCredential(m *spec.Model, row spec.Provider, opts Options) (credential, error) {
	if spec.IsEmpty(&m.Auth) && m.Auth.To == nil {
		return credential{}, nil
	}
	if m.Auth.To == nil {
		return credential{}, authError(m, fmt.Errorf("auth names %s, which is not an auth", m.Auth.ID))
	}
	id := m.Auth.To.EntityID()
	auth, ok := m.Auth.To.(spec.KeyAuth)
	if !ok && row.Key == spec.CloudIdentity && m.AuthConflict() == "" {
		return credential{name: id}, nil // the provider's builder uses it
	}
	if problem := m.AuthConflict(); problem != "" || !ok {
		return credential{}, authError(m, errors.New(cmp.Or(problem, "auth "+id+" has no key")))
	}
	secret, host := auth.ModelKey()
	key, err := secret.Resolve(opts.Secret)
	if err != nil {
		return credential{}, authError(m, fmt.Errorf("auth %s: %w", id, err))
	}
	if _, problem := m.KeyConflict(auth, key); problem != "" {
		return credential{}, authError(m, fmt.Errorf("auth %s %s", id, problem))
	}
	key = strings.TrimSpace(key)
	return credential{key: key, name: id, host: host}, nil
}

// authError prefixes an error about a model's auth with the model and the
// position of the reference in the document.
func authError(m *spec.Model, err error) error {
	if position := m.Auth.Span.String(); position != "" {
		return fmt.Errorf("%s: model %s: %w", position, m.ID, err)
	}
	return fmt.Errorf("model %s: %w", m.ID, err)
}
