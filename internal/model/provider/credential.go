package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

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

// identity returns the environment and the policy for an identity of a cloud: without an
// auth and an address of the document, it is that of the user, for a server of the provider.
func (o Options) identity(m *spec.Model) (getenv func(string) string, p *trust.Policy) {
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
