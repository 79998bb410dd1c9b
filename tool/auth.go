package tool

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/qtype-dev/qtype/spec"
)

// keyHeader is the header that carries the key of an api_key auth that names no other.
const keyHeader = "X-API-Key"

const authorization = "Authorization"

// Service is a server that a tool calls.
type Service struct {
	Tool         string              // the tool's id
	URL          string              // the server's address
	Auth         spec.Ref[spec.Auth] // the credentials for it
	AllowPrivate bool                // it may have a loopback, private or link-local address
}

// readAuth makes the credential of a tool (reference steps.md 4.1): a
// bearer_token and the token of an oauth2 go into Authorization, as do the user
// and password of a basic; an api_key goes where it says, else into X-API-Key.
func readAuth(s Service, opts Options) (*credential, error) {
	switch auth := s.Auth.To.(type) {
	case nil:
		if !s.Auth.IsZero() {
			return nil, fmt.Errorf("auth names %s, which is not an auth", s.Auth.ID)
		}
		return &credential{}, nil
	case *spec.BearerTokenAuth:
		token, err := reveal(auth.ID, auth.Token, opts)
		return &credential{name: auth.ID, header: authorization, value: "Bearer " + token, secrets: []string{token}}, err
	case *spec.BasicAuth:
		password, err := reveal(auth.ID, auth.Password, opts)
		pair := base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + password))
		return &credential{name: auth.ID, header: authorization, value: "Basic " + pair, secrets: []string{pair, password}}, err
	case *spec.APIKeyAuth:
		return keyCredential(auth, s, opts)
	case *spec.OAuth2Auth:
		g, err := newGrant(auth, s, opts)
		return &credential{name: auth.ID, header: authorization, grant: g}, err
	default:
		return nil, &NotAvailableError{Tool: s.Tool, What: fmt.Sprintf("auth type %s (%s)", spec.TypeName(auth), auth.EntityID())}
	}
}

func keyCredential(auth *spec.APIKeyAuth, s Service, opts Options) (*credential, error) {
	if err := sameHost(auth, s.URL); err != nil {
		return nil, err
	}
	key, err := reveal(auth.ID, auth.APIKey, opts)
	c := &credential{name: auth.ID, value: key, secrets: []string{key, url.QueryEscape(key)}}
	switch {
	case err != nil:
		return nil, err
	case auth.Header != "" && auth.Query != "":
		return nil, fmt.Errorf("auth %s has a header and a query; a key is sent in one of them", auth.ID)
	case auth.Query != "":
		c.query = auth.Query
	default:
		c.header = http.CanonicalHeaderKey(cmp.Or(auth.Header, keyHeader))
		if !sendable(c.header, "") {
			return nil, fmt.Errorf("auth %s: header %q cannot be sent", auth.ID, auth.Header)
		}
	}
	return c, nil
}

// sameHost holds a key back from a server that it does not belong to.
func sameHost(auth *spec.APIKeyAuth, endpoint string) error {
	if auth.Host == "" {
		return nil
	}
	host, err := url.Parse(auth.Host)
	if err != nil || host.Host == "" {
		return fmt.Errorf("auth %s: host is not a URL", auth.ID)
	}
	e, err := parseEndpoint(endpoint)
	if err != nil {
		return err
	}
	u, err := url.Parse(e.staticPart())
	if err != nil {
		return errors.New("endpoint is not a URL")
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
