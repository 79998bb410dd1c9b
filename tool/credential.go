package tool

import (
	"net/http"
	"net/url"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// credential proves who calls. The zero value proves nothing. It is safe for
// concurrent use.
type credential struct {
	name    string             // the auth's id; empty for no credential
	header  string             // the header that carries the proof; empty where none does
	query   string             // the query parameter that carries it; empty where none does
	value   string             // what the header or the parameter says; a grant's token stands for it
	secrets []string           // what no message may show
	grant   *clientCredentials // where tokens come from; nil for a proof that stays the same
}

// sign puts the proof on a request, which is changed.
func (c *credential) sign(req *http.Request) error {
	value := c.value
	if c.grant != nil {
		token, err := c.grant.token(req.Context())
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

// redact takes the credential's secrets out of a text that a server sent.
func (c *credential) redact(text string) string {
	for _, secret := range c.secrets {
		text = httpx.Scrub(text, secret)
	}
	if c.grant != nil {
		text = c.grant.scrub(text)
	}
	return text
}

// authTransport adds a credential to the requests to one server.
type authTransport struct {
	below        http.RoundTripper
	scheme, host string
	auth         *credential
}

// RoundTrip sends a request; with a new token once more where the server refused
// an old one, which may have ended before its time.
func (s *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.auth.header == "" && s.auth.query == "" || req.URL.Host != s.host || req.URL.Scheme != s.scheme {
		return s.below.RoundTrip(req)
	}
	resp, used, err := s.once(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || s.auth.grant == nil {
		return resp, err
	}
	s.auth.grant.drop(used)
	again := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return resp, nil
		}
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the server's answer is the better one
		}
	}
	_ = resp.Body.Close()
	resp, _, err = s.once(again)
	return resp, err
}

// once sends a signed copy of a request; used is what its header says.
func (s *authTransport) once(req *http.Request) (resp *http.Response, used string, err error) {
	req = req.Clone(req.Context())
	if err := s.auth.sign(req); err != nil {
		if req.Body != nil { // a round tripper closes it in any case
			_ = req.Body.Close()
		}
		return nil, "", err
	}
	resp, err = s.below.RoundTrip(req)
	return resp, req.Header.Get(s.auth.header), err
}
