package tool

import (
	"errors"
	"net/http"
	"net/url"
)

// Client is an HTTP client for one server: it sends the credentials there and
// nowhere else, and keeps away from private addresses unless they are allowed.
func Client(s Service, opts Options) (*http.Client, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the url is none of a web server's")
	}
	auth, err := readAuth(s, opts)
	if err != nil {
		return nil, err
	}
	c := caller(opts.HTTP, s.AllowPrivate)
	c.Transport = &signed{below: c.Transport, host: u.Host, scheme: u.Scheme, auth: auth}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// signed adds a credential to the requests to one server.
type signed struct {
	below        http.RoundTripper
	scheme, host string
	auth         credential
}

// RoundTrip sends a request.
func (s *signed) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.auth.header != "" && req.URL.Host == s.host && req.URL.Scheme == s.scheme {
		req = req.Clone(req.Context())
		req.Header.Set(s.auth.header, s.auth.value)
	}
	return s.below.RoundTrip(req)
}
