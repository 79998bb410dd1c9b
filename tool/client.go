package tool

import (
	"errors"
	"net/http"
	"net/url"
)

// Client returns an HTTP client for one server: it sends the credentials to this server
// only, follows no redirects, and connects to private addresses only if they are allowed.
func Client(s Service, opts Options) (*http.Client, error) {
	if !isWebURL(s.URL) {
		return nil, errors.New("the url is not an http or https address")
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	if err := opts.Policy.Address(u); err != nil {
		return nil, err
	}
	auth, err := readAuth(s, opts)
	if err != nil {
		return nil, err
	}
	c := newHTTPClient(opts.HTTP, s.AllowPrivate && opts.Policy.AllowsPrivate(u))
	c.Transport = &authTransport{next: c.Transport, host: u.Host, scheme: u.Scheme, auth: auth}
	c.CheckRedirect = noRedirect
	return c, nil
}

// PublicClient returns an HTTP client that connects to no private address: each address
// is checked after name resolution, also after redirects. given may be nil.
func PublicClient(given *http.Client) *http.Client { return newHTTPClient(given, false) }

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// isWebURL reports whether a text is the URL of a web server.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
