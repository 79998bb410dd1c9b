package tool

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

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
	addAuth(table, loginCredential)
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
		if !spec.IsEmpty(&s.Auth) {
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
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, value: "Bearer " + token, secrets: []string{token}}, err
}

func basicCredential(auth *spec.BasicAuth, _ Service, opts Options) (*credential, error) {
	password, err := reveal(auth.ID, auth.Password, opts)
	pair := base64.StdEncoding.EncodeToString([]byte(auth.Username + ":" + password))
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, value: "Basic " + pair, secrets: []string{pair, password}}, err
}

func oauth2Credential(auth *spec.OAuth2Auth, s Service, opts Options) (*credential, error) {
	tokens, err := newTokenSource(auth, s, opts)
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, tokenSource: tokens}, err
}

// keyCredential puts a key into the header or the query parameter that the auth
// names, else into X-API-Key.
func keyCredential(auth *spec.APIKeyAuth, s Service, opts Options) (*credential, error) {
	if problem := auth.HostConflict(s.URL); problem != "" {
		return nil, fmt.Errorf("auth %s %s", auth.ID, problem)
	}
	key, err := reveal(auth.ID, auth.APIKey, opts)
	if err != nil {
		return nil, err
	}
	if auth.Header != "" && auth.Query != "" {
		return nil, fmt.Errorf("auth %s has a header and a query; a key is sent in one of them", auth.ID)
	}
	c := &credential{name: auth.ID, value: key, secrets: []string{key, url.QueryEscape(key)}}
	c.header, c.query = spec.CredentialPlace(auth)
	if c.query == "" && (!isSendable(c.header, "") || spec.IsTransportHeader(c.header)) {
		return nil, fmt.Errorf("auth %s: invalid header name %q", auth.ID, auth.Header)
	}
	c.header = http.CanonicalHeaderKey(c.header)
	return c, nil
}

// reveal returns the text of a secret, which must fit into a header.
func reveal(id string, s spec.Secret, opts Options) (string, error) {
	text, err := s.Resolve(opts.Secret)
	if err != nil {
		return "", fmt.Errorf("auth %s: %w", id, err)
	}
	if problem := spec.ToolKeyProblem(text); problem != "" {
		return "", fmt.Errorf("auth %s %s", id, problem)
	}
	return text, nil
}
