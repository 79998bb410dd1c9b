package tool

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/qtype-dev/qtype/spec"
)

// KeyHeader is the header that carries the key of an api_key auth.
const KeyHeader = "X-API-Key"

// credential is a header that proves who calls.
type credential struct {
	name   string // the auth's id
	header string // the header's name; empty for no credential
	value  string // the header's value
	secret string // the secret part of the value
}

// Service is a server that a tool calls.
type Service struct {
	Tool         string              // the tool's id
	URL          string              // the server's address
	Auth         spec.Ref[spec.Auth] // the credentials for it
	AllowPrivate bool                // it may have a loopback, private or link-local address
}

// readAuth makes the credential of a tool. A bearer_token goes into
// Authorization, an api_key into X-API-Key.
func readAuth(s Service, opts Options) (credential, error) {
	switch auth := s.Auth.To.(type) {
	case nil:
		if !s.Auth.IsZero() {
			return credential{}, fmt.Errorf("auth names %s, which is no auth", s.Auth.ID)
		}
		return credential{}, nil
	case *spec.BearerTokenAuth:
		token, err := reveal(auth.ID, auth.Token, opts)
		return credential{auth.ID, "Authorization", "Bearer " + token, token}, err
	case *spec.APIKeyAuth:
		if err := sameHost(auth, s.URL); err != nil {
			return credential{}, err
		}
		key, err := reveal(auth.ID, auth.APIKey, opts)
		return credential{auth.ID, KeyHeader, key, key}, err
	default:
		return credential{}, &NotAvailableError{Tool: s.Tool, What: fmt.Sprintf("auth type %s (%s)", spec.TypeName(auth), auth.EntityID())}
	}
}

// sameHost holds a key back from a server that it does not belong to.
func sameHost(auth *spec.APIKeyAuth, endpoint string) error {
	if auth.Host == "" {
		return nil
	}
	host, err := url.Parse(auth.Host)
	if err != nil || host.Host == "" {
		return fmt.Errorf("auth %s: host is no URL", auth.ID)
	}
	e, err := parseEndpoint(endpoint)
	if err != nil {
		return err
	}
	u, err := url.Parse(e.literal())
	if err != nil {
		return errors.New("endpoint is no URL")
	}
	if u.Host != host.Host || u.Scheme != host.Scheme {
		return fmt.Errorf("auth %s belongs to %s://%s, but the endpoint is at %s://%s", auth.ID, host.Scheme, host.Host, u.Scheme, u.Host)
	}
	return nil
}

func reveal(id string, s spec.Secret, opts Options) (string, error) {
	text := s.Reveal()
	if s.Ref != nil {
		if opts.Secret == nil {
			return "", fmt.Errorf("auth %s: secret %s needs a secret manager, which is not available yet", id, s.Ref.SecretName)
		}
		var err error
		if text, err = opts.Secret(s); err != nil {
			return "", fmt.Errorf("auth %s: %w", id, err)
		}
	}
	if text == "" {
		return "", fmt.Errorf("auth %s is empty", id)
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return "", fmt.Errorf("auth %s holds a character that cannot be sent; is there a line end behind it?", id)
		}
	}
	return text, nil
}
