package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

// hostList has the names that requests may have in the header Host. Against DNS
// rebinding: a page of attacker.example whose name resolves to 127.0.0.1 is for the
// browser the origin of this server, but its requests name attacker.example as host. An
// IP address as host cannot be rebound.
type hostList []string

// newHostList reads the names. A port of an entry is ignored.
func newHostList(hosts []string) (hostList, error) {
	var list hostList
	for _, entry := range hosts {
		host := hostOf(entry)
		if host == "" || strings.ContainsAny(entry, "/*@ ") {
			return nil, fmt.Errorf("the allowed host %q is not a name such as app.example.com", entry)
		}
		list = append(list, host)
	}
	return list, nil
}

// hostOf returns the host without port, in lower case and without a final dot.
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// check returns a problem if a request is for another host.
func (l hostList) check(r *http.Request) error {
	host := hostOf(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || slices.Contains(l, host) {
		return nil
	}
	return problem.New(http.StatusMisdirectedRequest, "unknown_host",
		"the server has no such host name; the operator can allow it with --allowed-host")
}

// originPolicy decides which web pages may call the server.
type originPolicy struct {
	origins []string // exact
	any     bool     // "*"
	browser *http.CrossOriginProtection
}

// newOriginPolicy reads the allowed origins.
func newOriginPolicy(origins []string, authenticated bool) (*originPolicy, error) {
	p := &originPolicy{browser: http.NewCrossOriginProtection()}
	for _, origin := range origins {
		if origin == "*" {
			if !authenticated {
				return nil, errors.New(`the CORS origin "*" needs authentication: without it any web page could use the server`)
			}
			p.any = true
			continue
		}
		if !isOrigin(origin) {
			return nil, fmt.Errorf("the CORS origin %q is not an origin such as https://app.example.com", origin)
		}
		if err := p.browser.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("the CORS origin %q: %w", origin, err)
		}
		p.origins = append(p.origins, origin)
	}
	return p, nil
}

// isOrigin reports whether a text is an origin as browsers write it.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		!strings.Contains(u.Host, "*") && u.Scheme+"://"+strings.ToLower(u.Host) == text
}

// allows reports whether the pages of an origin may call the server.
func (p *originPolicy) allows(origin string) bool {
	return origin != "" && (p.any || slices.Contains(p.origins, origin))
}

// checkBrowser returns a problem if another site sends a request through a browser that
// proves its identity by itself: by its address, or by a cookie. Requests with a key or
// token in a header need no check, because other sites do not know it. Links to pages
// are accepted. Reading without a cookie or in another site is refused as well, because
// it could start work.
func (p *originPolicy) checkBrowser(r *http.Request) error {
	if p.browser.Check(r) != nil {
		return crossOrigin()
	}
	origin := r.Header.Get("Origin")
	if slices.Contains(p.origins, origin) {
		return nil
	}
	if origin != "" && !isSameOrigin(origin, r) {
		return crossOrigin()
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Method == http.MethodGet {
		return nil
	}
	return crossOrigin()
}

func crossOrigin() *problem.Problem {
	return problem.New(http.StatusForbidden, "cross_origin",
		"a page of another origin may not call this server; the operator can allow it with --cors-origin")
}

// isSameOrigin reports whether an origin has the host of the request. The scheme is not
// known behind a proxy.
func isSameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}
