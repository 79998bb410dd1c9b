package tool

import (
	"errors"
	"net/http"
	"net/url"
)

// Client is an HTTP client for one server: it sends the credentials there and
// nowhere else, and keeps away from private addresses unless they are allowed.
func Client(s Service, opts Options) (*http.Client, error) {
	if !isWebAddress(s.URL) {
		return nil, errors.New("the url is not that of a web server")
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	auth, err := readAuth(s, opts)
	if err != nil {
		return nil, err
	}
	c := caller(opts.HTTP, s.AllowPrivate)
	c.Transport = &authTransport{below: c.Transport, host: u.Host, scheme: u.Scheme, auth: auth}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// isWebAddress tells whether a text is the URL of a web server.
func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
