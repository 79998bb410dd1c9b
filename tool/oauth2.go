package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/signin"
	"github.com/qtype-dev/qtype/spec"
)

// tokenSource requests tokens by the client credentials grant (RFC 6749, section
// 4.4) and caches a token until it expires. It is safe for concurrent use: callers
// that need a token at the same time share one request.
//
// The cache is not oauth2.ReuseTokenSource, which cannot drop a token that a server
// has rejected (TestOAuth2_RenewsRejectedTokenOnce) and does not stop waiting when
// the caller's context ends.
type tokenSource struct {
	name   string // the auth's id
	config clientcredentials.Config
	learn  func(secrets ...string) // see Options.Learn
	http   *http.Client
	cached chan *oauth2.Token // a mutex that holds the token, nil before the first: only who receives it may request another
}

func newTokenSource(auth *spec.OAuth2Auth, service Service, opts Options) (*tokenSource, error) {
	secret, err := reveal(auth.ID, auth.ClientSecret, opts)
	if err != nil {
		return nil, err
	}
	if !isWebURL(auth.TokenURL) {
		return nil, fmt.Errorf("auth %s: token_url is not an http or https address", auth.ID)
	}
	server, err := url.Parse(auth.TokenURL)
	if err != nil {
		return nil, fmt.Errorf("auth %s: token_url is not an http or https address", auth.ID)
	}
	s := &tokenSource{name: auth.ID, learn: opts.learn, cached: make(chan *oauth2.Token, 1), http: newHTTPClient(opts.HTTP, service.AllowPrivate && opts.Policy.AllowsPrivate(server)),
		config: clientcredentials.Config{ClientID: auth.ClientID, ClientSecret: secret, TokenURL: auth.TokenURL, Scopes: auth.Scopes}}
	if auth.Resource != "" {
		s.config.EndpointParams = url.Values{"resource": {auth.Resource}}
	}
	s.http.Transport = &authTransport{next: s.http.Transport, auth: &credential{}} // adds the User-Agent only
	s.http.CheckRedirect = noRedirect                                              // the secret is for the declared server only
	s.cached <- nil
	return s, nil
}

// token returns a token that is valid now. It waits no longer than ctx.
func (s *tokenSource) token(ctx context.Context) (*oauth2.Token, error) {
	var token *oauth2.Token
	select {
	case token = <-s.cached:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if token.Valid() {
		s.cached <- token
		return token, nil
	}
	fresh, err := s.config.Token(context.WithValue(ctx, oauth2.HTTPClient, s.http))
	if err != nil {
		s.cached <- nil
		return nil, s.explain(ctx, err)
	}
	s.cached <- fresh
	s.learn(fresh.AccessToken)
	return fresh, nil
}

// drop removes the token that a request carried from the cache, unless it was
// replaced meanwhile.
func (s *tokenSource) drop(used string) {
	token := <-s.cached
	if token != nil && strings.HasSuffix(used, " "+token.AccessToken) {
		token = nil
	}
	s.cached <- token
}

// redact removes the client's secret and the cached token from a text.
func (s *tokenSource) redact(text string) string {
	token := <-s.cached
	s.cached <- token
	if token != nil {
		text = httpx.Scrub(text, token.AccessToken)
	}
	return httpx.Scrub(text, s.config.ClientSecret)
}

// explain describes in one line what the token server did.
func (s *tokenSource) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &tokenError{auth: s.name}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		e.what = httpx.Reason(err)
		if refused, ok := errors.AsType[*refusedError](err); ok {
			e.what = refused.Error()
		}
		e.what = httpx.Scrub(e.what, s.config.ClientSecret)
		return e
	}
	e.what = fmt.Sprintf("HTTP %d", answer.Response.StatusCode)
	switch {
	case answer.ErrorCode != "" && answer.ErrorDescription != "":
		e.what += fmt.Sprintf(": %s (%s)", answer.ErrorCode, answer.ErrorDescription)
	case answer.ErrorCode != "":
		e.what += ": " + answer.ErrorCode
	}
	e.what = httpx.SingleLine(httpx.Scrub(e.what, s.config.ClientSecret), maxExcerpt)
	return e
}

// tokenError reports a failed token request.
type tokenError struct{ auth, what string }

func (e *tokenError) Error() string {
	return fmt.Sprintf("auth %s: no token from the token server: %s", e.auth, e.what)
}

// loginTokens are the tokens that qtype login has stored. It renews them, and stores the
// new ones. Another process may do the same: the file is read again before an error.
type loginTokens struct {
	name   string // the auth's id
	key    signin.Key
	folder signin.Folder
	http   *http.Client
	learn  func(secrets ...string)
	secret string              // of the declared client; that of a registered one is stored
	held   chan *signin.Tokens // a mutex that holds the tokens, nil before the first: only who receives them may renew them
}

// loginCredential sends the tokens of the user. A restricted document gets none.
func loginCredential(auth *spec.OAuth2LoginAuth, s Service, opts Options) (*credential, error) {
	t, err := newLoginTokens(auth, s, opts)
	if err != nil {
		return nil, err
	}
	return &credential{name: auth.ID, header: spec.AuthorizationHeader, tokenSource: t}, nil
}

func newLoginTokens(auth *spec.OAuth2LoginAuth, s Service, opts Options) (*loginTokens, error) {
	if err := opts.Policy.Identity("the sign-in of the user at " + s.URL); err != nil {
		return nil, err
	}
	secret, err := ClientSecret(auth, opts)
	if err != nil {
		return nil, err
	}
	folder, err := signin.Default()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	t := &loginTokens{name: auth.ID, key: signin.KeyOf(auth, s.URL), folder: folder, learn: opts.learn, secret: secret,
		http: newHTTPClient(opts.HTTP, s.AllowPrivate && opts.Policy.AllowsPrivate(server)), held: make(chan *signin.Tokens, 1)}
	t.http.Transport = &authTransport{next: t.http.Transport, auth: &credential{}} // adds the User-Agent only
	t.http.CheckRedirect = noRedirect                                              // the refresh token is for this server only
	t.held <- nil
	return t, nil
}

// ClientSecret returns the secret of the client of a sign-in; empty if it has none.
func ClientSecret(auth *spec.OAuth2LoginAuth, opts Options) (string, error) {
	if auth.ClientSecret.IsZero() {
		return "", nil
	}
	return reveal(auth.ID, auth.ClientSecret, opts)
}

func (t *loginTokens) token(ctx context.Context) (*oauth2.Token, error) {
	var held *signin.Tokens
	select {
	case held = <-t.held:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if held == nil || !held.Token().Valid() {
		var err error
		if held, err = t.renewed(ctx); err != nil {
			t.held <- nil
			return nil, err
		}
	}
	t.held <- held
	return held.Token(), nil
}

// renewed returns tokens that are valid: the stored ones, or new ones.
func (t *loginTokens) renewed(ctx context.Context) (*signin.Tokens, error) {
	stored, err := t.load()
	if err != nil || stored.Token().Valid() {
		return stored, err
	}
	if stored.RefreshToken == "" {
		return nil, t.signInAgain("the tokens have expired")
	}
	config := oauth2.Config{ClientID: stored.ClientID, ClientSecret: stored.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: stored.TokenURL, AuthStyle: oauth2.AuthStyleInParams}}
	if stored.InHeader {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	if t.secret != "" {
		config.ClientSecret = t.secret
	}
	fresh, err := config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, t.http), &oauth2.Token{RefreshToken: stored.RefreshToken}).Token()
	if err != nil {
		if other, _ := t.load(); other != nil && other.AccessToken != stored.AccessToken && other.Token().Valid() {
			return other, nil // another process was faster
		}
		return nil, t.explain(ctx, err)
	}
	stored.Set(fresh)
	t.learn(stored.Secrets()...)
	return stored, t.folder.Save(t.key, stored)
}

// load returns the stored tokens.
func (t *loginTokens) load() (*signin.Tokens, error) {
	stored, err := t.folder.Load(t.key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("auth %s: %w", t.name, err)
	case stored == nil:
		return nil, t.signInAgain("there is no sign-in")
	}
	t.learn(stored.Secrets()...)
	return stored, nil
}

// signInAgain returns an error that only the user can solve.
func (t *loginTokens) signInAgain(reason string) error {
	return &refusedError{fmt.Sprintf("auth %s: %s at %s: run \"qtype login\" with the document", t.name, reason, t.key.Server)}
}

// explain describes in one line what the token server did.
func (t *loginTokens) explain(ctx context.Context, err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &answer):
		return &tokenError{auth: t.name, what: httpx.Reason(err)}
	case answer.ErrorCode == "invalid_grant":
		return t.signInAgain("the tokens are not valid any more")
	}
	return &tokenError{auth: t.name, what: httpx.SingleLine(fmt.Sprintf("HTTP %d: %s", answer.Response.StatusCode, answer.ErrorCode), maxExcerpt)}
}

// drop makes the next request renew the token that a request carried, unless it was
// replaced meanwhile.
func (t *loginTokens) drop(used string) {
	held := <-t.held
	defer func() { t.held <- held }()
	if held == nil || !strings.HasSuffix(used, " "+held.AccessToken) {
		return
	}
	if stored, err := t.folder.Load(t.key); err == nil && stored != nil && stored.AccessToken == held.AccessToken {
		stored.Expiry = time.Unix(0, 0)
		_ = t.folder.Save(t.key, stored) // otherwise the next request is rejected too
	}
	held = nil
}

func (t *loginTokens) redact(text string) string {
	held := <-t.held
	t.held <- held
	if held != nil {
		for _, secret := range held.Secrets() {
			text = httpx.Scrub(text, secret)
		}
	}
	return text
}
