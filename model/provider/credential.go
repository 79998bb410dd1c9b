package provider

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
)

// credential is a key, where it came from, and the server that it belongs to.
type credential struct {
	key  string // the secret itself; empty for none
	name string // an auth's id or a variable's name
	host string // the base URL that the key belongs to, mostly empty
}

// openAICredential finds the key of an openai model: its auth's, else OPENAI_API_KEY.
func openAICredential(m *spec.Model, opts Options) (credential, error) {
	c, err := authCredential(m, opts)
	if err != nil || c.name != "" {
		return c, err
	}
	return credential{key: strings.TrimSpace(opts.Getenv(keyVariable)), name: keyVariable}, nil
}

// authCredential reads a model's auth; the empty credential where it has none.
func authCredential(m *spec.Model, opts Options) (credential, error) {
	if m.Auth.IsZero() && m.Auth.To == nil {
		return credential{}, nil
	}
	var c credential
	var secret spec.Secret
	switch a := m.Auth.To.(type) {
	case *spec.APIKeyAuth:
		secret, c.host = a.APIKey, a.Host
	case *spec.BearerTokenAuth:
		secret = a.Token
	case nil:
		return c, atAuth(m, fmt.Errorf("auth names %s, which is not an auth", m.Auth.ID))
	default:
		return c, atAuth(m, fmt.Errorf("provider %s takes an auth of type api_key or bearer_token; %s is %s",
			m.Provider, a.EntityID(), spec.TypeName(a)))
	}
	c.name = m.Auth.To.EntityID()
	key, err := reveal(secret, opts)
	if err != nil {
		return c, atAuth(m, fmt.Errorf("auth %s: %w", c.name, err))
	}
	if c.key = strings.TrimSpace(key); strings.ContainsFunc(c.key, unicode.IsControl) {
		return c, atAuth(m, fmt.Errorf("auth %s holds a character that cannot be sent", c.name))
	}
	if c.key == "" && m.BaseURL == "" && c.host == "" { // a server of one's own may need none
		return c, atAuth(m, fmt.Errorf("auth %s holds an empty key", c.name))
	}
	return c, nil
}

// atAuth puts the model before what is wrong with its auth, and the place where
// the document names that.
func atAuth(m *spec.Model, err error) error {
	if place := m.Auth.Span.String(); place != "" {
		return fmt.Errorf("%s: model %s: %w", place, m.ID, err)
	}
	return fmt.Errorf("model %s: %w", m.ID, err)
}

// reveal is the text of a secret.
func reveal(s spec.Secret, opts Options) (string, error) {
	switch {
	case s.Ref == nil:
		return s.Reveal(), nil
	case opts.Secret == nil:
		return "", fmt.Errorf("secret %s needs a secret manager, which is not available yet", s.Ref.SecretName)
	}
	return opts.Secret(s)
}
