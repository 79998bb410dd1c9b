package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
)

// clientCredentials asks a token server for tokens by a client's own credentials (RFC 6749
// section 4.4) and keeps a token until it ends. It is safe for concurrent use:
// callers that need a token at the same time share one request.
type clientCredentials struct {
	name   string // the auth's id
	config clientcredentials.Config
	http   *http.Client
	held   chan *oauth2.Token // holds the token, or nil before the first; whoever takes it out alone may ask for another
}

func newGrant(auth *spec.OAuth2Auth, s Service, opts Options) (*clientCredentials, error) {
	secret, err := reveal(auth.ID, auth.ClientSecret, opts)
	if err != nil {
		return nil, err
	}
	if !isWebAddress(auth.TokenURL) {
		return nil, fmt.Errorf("auth %s: the token_url is not that of a web server", auth.ID)
	}
	g := &clientCredentials{name: auth.ID, held: make(chan *oauth2.Token, 1), http: caller(opts.HTTP, s.AllowPrivate)}
	g.config = clientcredentials.Config{ClientID: auth.ClientID, ClientSecret: secret, TokenURL: auth.TokenURL, Scopes: auth.Scopes}
	// The client's secret goes to the server that the document names and nowhere else.
	g.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	g.held <- nil
	return g, nil
}

// token is a token that is valid now. It waits no longer than ctx.
func (g *clientCredentials) token(ctx context.Context) (*oauth2.Token, error) {
	var held *oauth2.Token
	select {
	case held = <-g.held:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if held.Valid() {
		g.held <- held
		return held, nil
	}
	fresh, err := g.config.Token(context.WithValue(ctx, oauth2.HTTPClient, g.http))
	if err != nil {
		g.held <- nil
		return nil, g.explain(ctx, err)
	}
	g.held <- fresh
	return fresh, nil
}

// drop forgets the token that a request carried, unless there is another one already.
func (g *clientCredentials) drop(used string) {
	held := <-g.held
	if held != nil && strings.HasSuffix(used, " "+held.AccessToken) {
		held = nil
	}
	g.held <- held
}

// scrub takes the client's secret and the token that is held out of a text.
func (g *clientCredentials) scrub(text string) string {
	held := <-g.held
	g.held <- held
	if held != nil {
		text = httpx.Scrub(text, held.AccessToken)
	}
	return httpx.Scrub(text, g.config.ClientSecret)
}

// explain tells in one line what the token server did.
func (g *clientCredentials) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &tokenError{auth: g.name, temporary: true}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		e.what = httpx.Reason(err)
		if refused, ok := errors.AsType[*refusedError](err); ok {
			e.what, e.temporary = refused.Error(), false
		}
		e.what = httpx.Scrub(e.what, g.config.ClientSecret)
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
	e.what = httpx.SingleLine(httpx.Scrub(e.what, g.config.ClientSecret), maxExcerpt)
	return e
}

// tokenError says that a token server gave no token.
type tokenError struct {
	auth, what string
	temporary  bool // a later call may succeed
}

// Error names the auth and what the server did.
func (e *tokenError) Error() string {
	return fmt.Sprintf("auth %s: the token server gave no token: %s", e.auth, e.what)
}
