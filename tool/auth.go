package tool

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/spec"
)

// keyHeader carries the key of an api_key auth that names no other header.
const keyHeader = "X-API-Key"

const authorization = "Authorization"

// Service is a server that a tool calls.
type Service struct {
	Tool         string              // the tool's id
	URL          string              // the server's address
	Auth         spec.Ref[spec.Auth] // the credentials for the server
	Audience     string              // what the credentials of a cloud are for, see spec.APITool; empty for the default
	AllowPrivate bool                // whether the server may have a loopback, private or link-local address
}

// authBuilder makes the credential of a tool from one type of auth.
type authBuilder func(spec.Auth, Service, Options) (*credential, error)

// authBuilders is the one table of the types of auth that tools can use.
var authBuilders = sync.OnceValue(func() map[reflect.Type]authBuilder {
	table := map[reflect.Type]authBuilder{}
	addAuth(table, bearerCredential)
	addAuth(table, basicCredential)
	addAuth(table, keyCredential)
	addAuth(table, oauth2Credential)
	addAuth(table, awsCredential)
	addAuth(table, vertexCredential)
	addAuth(table, azureCredential)
	return table
})

func addAuth[A spec.Auth](table map[reflect.Type]authBuilder, build func(A, Service, Options) (*credential, error)) {
	table[reflect.TypeFor[A]()] = func(a spec.Auth, s Service, opts Options) (*credential, error) { return build(a.(A), s, opts) }
}

// readAuth makes the credential of a tool; one that adds nothing where the tool
// has no auth.
func readAuth(s Service, opts Options) (*credential, error) {
	auth := s.Auth.To
	if auth == nil {
		if !s.Auth.IsZero() {
			return nil, fmt.Errorf("auth names %s, which is not an auth", s.Auth.ID)
		}
		return &credential{}, nil
	}
	build, ok := authBuilders()[reflect.TypeOf(auth)]
	if !ok {
		return nil, &spec.NotAvailableError{Owner: "tool " + s.Tool, What: fmt.Sprintf("auth type %s (%s)", spec.TypeName(auth), auth.EntityID()), Key: "auth"}
	}
	return build(auth, s, opts)
}

func bearerCredential(auth *spec.BearerTokenAuth, _ Service, opts Options) (*credential, error) {
	token, err := reveal(auth.ID, auth.Token, opts)
	return &credential{name: auth.ID, header: authorization, value: "Bearer " + token, secrets: []string{token}}, err
}

func basicCredential(auth *spec.BasicAuth, _ Service, opts Options) (*credential, error) {
	password, err := reveal(auth.ID, auth.Password, opts)
	pair := base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + password))
	return &credential{name: auth.ID, header: authorization, value: "Basic " + pair, secrets: []string{pair, password}}, err
}

func oauth2Credential(auth *spec.OAuth2Auth, s Service, opts Options) (*credential, error) {
	tokens, err := newTokenSource(auth, s, opts)
	return &credential{name: auth.ID, header: authorization, tokenSource: tokens}, err
}

// keyCredential puts a key into the header or the query parameter that the auth
// names, else into X-API-Key.
func keyCredential(auth *spec.APIKeyAuth, s Service, opts Options) (*credential, error) {
	if err := checkHost(auth, s.URL); err != nil {
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
		if !isSendable(c.header, "") {
			return nil, fmt.Errorf("auth %s: invalid header name %q", auth.ID, auth.Header)
		}
	}
	return c, nil
}

// checkHost returns an error if the endpoint is not at the host that the key belongs to.
func checkHost(auth *spec.APIKeyAuth, endpoint string) error {
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

// reveal returns the text of a secret, which must fit into a header.
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
	if !httpguts.ValidHeaderFieldValue(text) || strings.ContainsRune(text, '\t') {
		return "", fmt.Errorf("auth %s contains a character that is not allowed in a header (trailing newline?)", id)
	}
	return text, nil
}
