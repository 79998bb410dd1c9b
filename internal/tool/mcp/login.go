package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/signin"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// LoginOf returns the auth by which a person signs in at the server of a tool; nil if it has none.
func LoginOf(t *spec.MCPTool) *spec.OAuth2LoginAuth {
	auth, _ := t.Auth.To.(*spec.OAuth2LoginAuth)
	return auth
}

// Login signs a person in at the server of a tool, and stores the tokens. show gets the
// address that the person opens in a browser; the browser returns to a port of this
// computer. It ends when they have signed in or refused to, or with ctx.
func Login(ctx context.Context, t *spec.MCPTool, opts tool.Options, show func(address string)) (*signin.Tokens, error) {
	auth := LoginOf(t)
	if auth == nil {
		return nil, fmt.Errorf("tool %s has no auth of type oauth2_login", t.ID)
	}
	if err := opts.Policy.Identity("the sign-in of the user at " + t.URL); err != nil {
		return nil, err
	}
	folder, err := signin.Default()
	if err != nil {
		return nil, err
	}
	client, err := tool.Client(tool.Service{Tool: t.ID, URL: t.URL, AllowPrivate: t.AllowPrivate}, opts)
	if err != nil {
		return nil, err
	}
	back, err := listenForBrowser(ctx, auth.RedirectPort)
	if err != nil {
		return nil, err
	}
	defer back.close()
	l := &login{auth: auth, server: t.URL, client: client, back: back, show: show}
	if err := l.run(ctx, opts); err != nil {
		return nil, err
	}
	return l.tokens, folder.Save(signin.KeyOf(auth, t.URL), l.tokens)
}

// login is one sign-in.
type login struct {
	auth   *spec.OAuth2LoginAuth
	server string
	client *http.Client
	back   *browserReturn
	show   func(address string)
	tokens *signin.Tokens // nil until the person has signed in
}

// run calls the server, whose refusal names where to sign in, and signs in there.
func (l *login) run(ctx context.Context, opts tool.Options) error {
	config, err := l.handlerConfig(opts)
	if err != nil {
		return err
	}
	handler, err := sdkauth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	const first = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"qtype","version":"1"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server, strings.NewReader(first))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.client.Do(req)
	if err != nil {
		return errors.New(httpx.Reason(err))
	}
	if resp.StatusCode != http.StatusUnauthorized {
		_ = resp.Body.Close()
		return fmt.Errorf("%s requires no sign-in: it answered HTTP %d, not 401", l.server, resp.StatusCode)
	}
	err = handler.Authorize(ctx, req, resp)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return errors.New(httpx.SingleLine(err.Error(), 500))
	}
	return nil
}

// handlerConfig returns how the SDK signs in.
func (l *login) handlerConfig(opts tool.Options) (*sdkauth.AuthorizationCodeHandlerConfig, error) {
	c := &sdkauth.AuthorizationCodeHandlerConfig{Client: l.client, RedirectURL: l.back.url(), RequestRefreshToken: true,
		AuthorizationCodeFetcher: l.code, NewTokenSource: l.keep, AcceptUnadvertisedIss: true}
	if len(l.auth.Scopes) > 0 {
		c.ScopeFilter = func([]string) []string { return l.auth.Scopes }
	}
	if l.auth.ClientID == "" {
		c.DynamicClientRegistrationConfig = &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "qtype", RedirectURIs: []string{l.back.url()}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}}}
		return c, nil
	}
	c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.auth.ClientID, Issuer: l.auth.Issuer}
	secret, err := tool.ClientSecret(l.auth, opts)
	if err == nil && secret != "" {
		if l.auth.Issuer == "" {
			return nil, fmt.Errorf("auth %s has a client_secret without an issuer", l.auth.ID)
		}
		c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: secret}
	}
	return c, err
}

// code shows the address, and waits for the browser.
func (l *login) code(ctx context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the authorization server has no address for browsers")
	}
	l.back.expect(u.Query().Get("state"))
	l.show(args.URL)
	return l.back.wait(ctx)
}

// keep notes the tokens. The secret of a declared client is not stored.
func (l *login) keep(_ context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	l.tokens = &signin.Tokens{Server: l.server, TokenURL: config.Endpoint.TokenURL, ClientID: config.ClientID, InHeader: config.Endpoint.AuthStyle == oauth2.AuthStyleInHeader}
	if l.auth.ClientID == "" {
		l.tokens.ClientSecret = config.ClientSecret
	}
	l.tokens.Set(token)
	return oauth2.StaticTokenSource(token), nil
}

// browserReturn is the loopback address to which the authorization server sends the browser
// (RFC 8252, section 7.3).
type browserReturn struct {
	listener net.Listener
	server   *http.Server
	states   chan string // the state of the request
	done     chan *browserAnswer
	ended    chan struct{} // closed when the server has ended
}

// browserAnswer is what the authorization server answered.
type browserAnswer struct {
	result *sdkauth.AuthorizationResult
	err    error
}

func listenForBrowser(ctx context.Context, port int) (*browserReturn, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("the browser cannot return to port %d: %w", port, err)
	}
	b := &browserReturn{listener: listener, states: make(chan string, 1), done: make(chan *browserAnswer, 1), ended: make(chan struct{})}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(b.ended)
		_ = b.server.Serve(listener)
	}()
	return b, nil
}

func (b *browserReturn) url() string { return "http://" + b.listener.Addr().String() + "/callback" }

func (b *browserReturn) close() {
	_ = b.server.Close()
	<-b.ended
}

// expect sets the state that a request must have.
func (b *browserReturn) expect(state string) { b.states <- state }

// ServeHTTP takes the answer of the authorization server. Requests with another state, which
// any page can make the browser send, are refused.
func (b *browserReturn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query()
	var state string
	select {
	case state = <-b.states:
	default: // no sign-in waits
		http.NotFound(w, r)
		return
	}
	if r.URL.Path != "/callback" || state == "" || given.Get("state") != state {
		b.states <- state
		http.NotFound(w, r)
		return
	}
	a := &browserAnswer{result: &sdkauth.AuthorizationResult{Code: given.Get("code"), State: state, Iss: given.Get("iss")}}
	text := "You have signed in. This page can be closed.\n"
	if refusal := given.Get("error"); refusal != "" || a.result.Code == "" {
		a.err = fmt.Errorf("the authorization server refused: %s", httpx.SingleLine(strings.TrimSpace(refusal+" "+given.Get("error_description")), 300))
		text = "The sign-in was refused. This page can be closed.\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text))
	_ = http.NewResponseController(w).Flush() // before the server is closed
	b.done <- a
}

func (b *browserReturn) wait(ctx context.Context) (*sdkauth.AuthorizationResult, error) {
	select {
	case a := <-b.done:
		return a.result, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
