package tool

import (
	"context"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/qtype-dev/qtype/internal/httpx"
)

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
