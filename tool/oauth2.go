package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/qtype-dev/qtype/internal/httpx"
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
	e := &tokenError{auth: s.name, temporary: true}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		e.what = httpx.Reason(err)
		if refused, ok := errors.AsType[*refusedError](err); ok {
			e.what, e.temporary = refused.Error(), false
		}
		e.what = httpx.Scrub(e.what, s.config.ClientSecret)
		return e
	}
	e.temporary = busy(answer.Response.StatusCode)
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
type tokenError struct {
	auth, what string
	temporary  bool // whether a later call may succeed
}

func (e *tokenError) Error() string {
	return fmt.Sprintf("auth %s: no token from the token server: %s", e.auth, e.what)
}
