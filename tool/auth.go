package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/oauth2"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/internal/httpx"
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

// awsCredential signs requests by Signature Version 4, for the service that the tool names.
func awsCredential(auth *spec.AWSAuth, s Service, opts Options) (*credential, error) {
	signer, err := opts.AWS.Signer(auth, awsauth.Options{Getenv: opts.Getenv, Secret: opts.Secret, Policy: opts.Policy})
	if err != nil {
		return nil, err
	}
	if _, err := signer.Region(); err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: func(req *http.Request) error {
		body, err := bodyOf(req)
		if err != nil {
			return err
		}
		return signer.Sign(req, body, cmp.Or(s.Audience, awsService(req.URL.Hostname())))
	}}, nil
}

// awsService returns the name of the service of a host: lambda for function URLs of
// Lambda, otherwise execute-api for API Gateway.
func awsService(host string) string {
	if strings.Contains(host, ".lambda-url.") {
		return "lambda"
	}
	return "execute-api"
}

// bodyOf returns the body of a request, which stays as it is.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, errors.New("the body of the request cannot be read")
	}
	_ = req.Body.Close() // only read
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// vertexCredential adds the access tokens of a Google identity.
func vertexCredential(auth *spec.VertexAuth, _ Service, opts Options) (*credential, error) {
	if err := googleauth.Allowed(opts.Policy, auth); err != nil {
		return nil, err
	}
	id, err := googleauth.New(auth, opts.Getenv)
	if err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: id.Authorize}, nil
}

// azureCredential adds tokens of an Entra ID identity for the resource that the tool
// names, otherwise for the scheme and the host of the endpoint.
func azureCredential(auth *spec.AzureAuth, s Service, opts Options) (*credential, error) {
	id, err := azureauth.New(auth, azureauth.Options{Getenv: opts.Getenv, Secret: opts.Secret, Policy: opts.Policy})
	if err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, authorize: func(req *http.Request) error {
		origin := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}
		return id.Authorize(req, cmp.Or(s.Audience, origin.String()))
	}}, nil
}

// Caller identifies the caller of a tool.
type Caller struct {
	Step    string // the step's id
	Session string // the row's session
	Row     int64  // the row's number, counted from 1
	CallID  string // the model's id of the call; empty where a step calls the tool itself
	Key     string // of the call in the log of a run that can be repeated (steps.CallLog); empty without a log

	Repeat string // identifies the call among all, and is the same when the run repeats it; empty without a log

	AuditCall string // identifies the call in an audit log; may be empty
}

type callerKey struct{}

// WithCaller returns a context with the caller of the tools that are called under it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller; the zero Caller if the context has none.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Request is a call that the program running the application handles: the call of a
// ClientTool, or a call that requires approval.
type Request struct {
	Tool    Info             // the tool
	Outputs []*spec.Variable // what the result should contain
	Args    []byte           // the arguments, a JSON object in the order of the tool's inputs
	Caller  Caller           // the caller

	By      []string          // of an approval: who may decide, as spec.Approval.By; nil: the caller of the run
	Decided func(name string) // of an approval, may be nil: reports who has decided, if an Approver knows it
}

// ClientHandler runs a call of a client tool. It returns an object with the tool's
// outputs, or the value of the only output; anything that encoding/json can encode. It
// may be called by several goroutines at the same time, and must stop when ctx ends.
type ClientHandler func(context.Context, Request) (any, error)

// Approver decides whether a tool may be called. The reason of a rejection, which may be
// empty, is sent to the model.
type Approver func(context.Context, Request) (yes bool, reason string, err error)

// ConvertArgs validates the arguments of a call and converts them to the types of the
// tool's inputs.
func ConvertArgs(info Info, args map[string]any, convert func(*spec.Variable, any) (any, error)) (map[string]any, error) {
	given, err := info.ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	for _, in := range info.Inputs {
		raw, ok := given[in.ID]
		if !ok {
			continue
		}
		v, err := convert(in, raw)
		if err != nil {
			return nil, &ArgumentError{Tool: info.ID, Argument: in.ID, Problem: err.Error()}
		}
		given[in.ID] = v
	}
	return given, nil
}

// credential is added to each request to one server. The zero value adds none. It
// is safe for concurrent use.
type credential struct {
	name        string                    // the auth's id; empty for no credential
	header      string                    // the header that carries the value; empty for none
	query       string                    // the query parameter that carries the value; empty for none
	value       string                    // the value; not used where there is a tokenSource
	secrets     []string                  // texts that no message may contain
	tokenSource tokens                    // nil for a static credential
	authorize   func(*http.Request) error // adds the value; nil for a static credential or a tokenSource
}

// tokens are the tokens of an auth, each for a limited time. They are safe for concurrent use.
type tokens interface {
	// token returns a token that is valid now. It waits no longer than ctx.
	token(ctx context.Context) (*oauth2.Token, error)
	// drop forgets the token of a header that a server has rejected.
	drop(used string)
	// redact removes the secrets from a text.
	redact(text string) string
}

// sign adds the credential to a request, which is changed.
func (c *credential) sign(req *http.Request) error {
	if c.authorize != nil {
		return c.authorize(req)
	}
	value := c.value
	if c.tokenSource != nil {
		token, err := c.tokenSource.token(req.Context())
		if err != nil {
			return err
		}
		value = token.Type() + " " + token.AccessToken
	}
	switch {
	case c.query != "":
		u := *req.URL
		pair := url.QueryEscape(c.query) + "=" + url.QueryEscape(value)
		if u.RawQuery != "" {
			pair = u.RawQuery + "&" + pair
		}
		u.RawQuery = pair
		req.URL = &u
	case c.header != "":
		req.Header.Set(c.header, value)
	}
	return nil
}

// redact removes the credential's secrets from a text that a server sent.
func (c *credential) redact(text string) string {
	for _, secret := range c.secrets {
		text = httpx.Scrub(text, secret)
	}
	if c.tokenSource != nil {
		text = c.tokenSource.redact(text)
	}
	return text
}

// authTransport adds a credential to the requests to one server.
type authTransport struct {
	next         http.RoundTripper
	scheme, host string
	auth         *credential
}

// RoundTrip sends a request. Where the server rejects a token, which may have been
// revoked, it sends the request once more with a new one.
func (s *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", httpx.UserAgent())
	}
	if s.auth.header == "" && s.auth.query == "" || req.URL.Host != s.host || req.URL.Scheme != s.scheme {
		return s.next.RoundTrip(req)
	}
	resp, used, err := s.once(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || s.auth.tokenSource == nil {
		return resp, err
	}
	s.auth.tokenSource.drop(used)
	again := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return resp, nil
		}
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the caller gets the server's answer instead
		}
	}
	_ = resp.Body.Close()
	resp, _, err = s.once(again)
	return resp, err
}

// once sends a signed copy of a request; used is the value of its header.
func (s *authTransport) once(req *http.Request) (resp *http.Response, used string, err error) {
	req = req.Clone(req.Context())
	if err := s.auth.sign(req); err != nil {
		if req.Body != nil { // a RoundTripper closes it in any case
			_ = req.Body.Close()
		}
		return nil, "", err
	}
	resp, err = s.next.RoundTrip(req)
	return resp, req.Header.Get(s.auth.header), err
}
