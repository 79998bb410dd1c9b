// Package azureauth gets access tokens for the Microsoft Entra ID identity of a document: a
// service principal with a secret or a federated token, or the managed identity of the
// machine.
package azureauth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/accesstoken"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Options are the environment and the secrets of an identity.
type Options struct {
	Getenv func(name string) string          // the environment; nil means os.Getenv
	Secret func(spec.Secret) (string, error) // resolves references to a secret manager; nil where there is none
	Policy *trust.Policy                     // decides whether the credentials of the environment may be used; nil: they may
}

// Identity is a Microsoft Entra ID identity. It is safe for concurrent use.
type Identity struct {
	name      string // for messages
	tenant    string
	client    string
	secret    string
	file      string // with a federated token
	authority string
	getenv    func(string) string
	http      *http.Client

	mu     sync.Mutex
	tokens map[string]*accesstoken.Source // by the resource
}

// New makes an Identity. What the auth does not set comes from the environment: the
// variables of a service principal or of a workload identity, else the managed identity of
// the machine. It calls no server.
func New(auth *spec.AzureAuth, opts Options) (*Identity, error) {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	id := &Identity{name: "the Azure credentials of the environment", getenv: opts.Getenv, http: accesstoken.Client(), tokens: map[string]*accesstoken.Source{}}
	if auth != nil {
		id.name = "auth " + auth.ID
	} else {
		auth = &spec.AzureAuth{}
	}
	secret, err := auth.ClientSecret.Resolve(opts.Secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id.name, err)
	}
	if err := allowed(opts.Policy, auth); err != nil {
		return nil, err
	}
	id.tenant = cmp.Or(auth.TenantID, opts.Getenv("AZURE_TENANT_ID"))
	id.client = cmp.Or(auth.ClientID, opts.Getenv("AZURE_CLIENT_ID"))
	id.file = auth.FederatedTokenFile
	if id.secret = secret; secret == "" && id.file == "" {
		id.secret, id.file = opts.Getenv("AZURE_CLIENT_SECRET"), opts.Getenv("AZURE_FEDERATED_TOKEN_FILE")
	}
	id.authority = strings.TrimRight(cmp.Or(auth.AuthorityHost, opts.Getenv("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com"), "/")
	if (id.secret != "" || id.file != "") && (id.tenant == "" || id.client == "") {
		return nil, fmt.Errorf("%s: tenant_id and client_id are needed with a client_secret or a federated_token_file", id.name)
	}
	return id, nil
}

// allowed returns an error if a document may not use the credentials that it names, those
// of the environment or of a file.
func allowed(p *trust.Policy, auth *spec.AzureAuth) error {
	switch {
	case auth.FederatedTokenFile != "":
		return p.Read(auth.FederatedTokenFile)
	case auth.ClientSecret.IsZero():
		return p.Identity("the Azure credentials of the environment")
	}
	return nil
}

// Name returns what the credentials are, for messages.
func (id *Identity) Name() string { return id.name }

// Authorize adds a token for a resource, such as https://vault.azure.net, to a request.
func (id *Identity) Authorize(req *http.Request, resource string) error {
	token, err := id.Token(req.Context(), resource)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// Token returns a token for a resource.
func (id *Identity) Token(ctx context.Context, resource string) (string, error) {
	id.mu.Lock()
	source := id.tokens[resource]
	if source == nil {
		source = accesstoken.NewSource(func(ctx context.Context) (accesstoken.Token, error) { return id.request(ctx, resource) })
		id.tokens[resource] = source
	}
	id.mu.Unlock()
	return source.Token(ctx)
}

// request requests a token.
func (id *Identity) request(ctx context.Context, resource string) (accesstoken.Token, error) {
	req, err := id.newRequest(ctx, resource)
	if err != nil {
		return accesstoken.Token{}, &accesstoken.Error{Identity: id.name, Message: err.Error()}
	}
	var answer struct {
		Token string          `json:"access_token"`
		In    json.RawMessage `json:"expires_in"` // seconds; a text from managed identities
		On    json.RawMessage `json:"expires_on"` // the time, in seconds since 1970
	}
	client := id.http
	if id.secret == "" && id.file == "" {
		local := *client
		local.Timeout = 5 * time.Second // machines outside of Azure have no such server
		client = &local
	}
	if err := accesstoken.Request(client, req, id.name, id.secret, &answer); err != nil {
		return accesstoken.Token{}, err
	}
	token := accesstoken.Token{Text: answer.Token, Expires: time.Now().Add(5 * time.Minute)}
	if n := seconds(answer.In); n > 0 {
		token.Expires = time.Now().Add(time.Duration(n) * time.Second)
	} else if n := seconds(answer.On); n > 0 {
		token.Expires = time.Unix(n, 0)
	}
	return token, nil
}

// seconds reads a number or a text with a number, 0 for neither.
func seconds(raw json.RawMessage) int64 {
	n, _ := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	return n
}

// newRequest returns the request for a token, by the kind of the identity.
func (id *Identity) newRequest(ctx context.Context, resource string) (*http.Request, error) {
	if id.secret == "" && id.file == "" {
		return id.managed(ctx, resource)
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id.client}, "scope": {resource + "/.default"}}
	if id.secret != "" {
		form.Set("client_secret", id.secret)
	} else {
		assertion, err := os.ReadFile(id.file) // again for each token: it is replaced before it expires
		if err != nil {
			return nil, fmt.Errorf("cannot read the federated token: %w", err)
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", strings.TrimSpace(string(assertion)))
	}
	at := id.authority + "/" + url.PathEscape(id.tenant) + "/oauth2/v2.0/token"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, err
}

// managed returns the request for a token of the managed identity of the machine: of an App
// Service, which has an address in a variable, or of a virtual machine.
func (id *Identity) managed(ctx context.Context, resource string) (*http.Request, error) {
	query := url.Values{"resource": {resource}}
	if id.client != "" {
		query.Set("client_id", id.client)
	}
	at, header, value := id.getenv("IDENTITY_ENDPOINT"), "X-IDENTITY-HEADER", id.getenv("IDENTITY_HEADER")
	query.Set("api-version", "2019-08-01")
	if at == "" || value == "" {
		host := strings.TrimRight(cmp.Or(id.getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST"), "http://169.254.169.254"), "/")
		at, header, value = host+"/metadata/identity/oauth2/token", "Metadata", "true"
		query.Set("api-version", "2018-02-01")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+query.Encode(), http.NoBody)
	if err == nil {
		req.Header.Set(header, value)
	}
	return req, err
}
