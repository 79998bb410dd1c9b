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

	"golang.org/x/net/http/httpguts"

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

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsExposed = "Location, Preference-Applied, Retry-After, X-Run-Id, X-Session-Id, X-Ignored-Parameters, X-Request-Id, X-Vercel-Ai-Ui-Message-Stream, Mcp-Session-Id, WWW-Authenticate"
	corsMaxAge  = "600" // seconds
)

// setHeaders sets the CORS headers of a response for an allowed origin. Credentials of
// the browser, such as cookies, are never allowed: pages of other origins send a key or
// a token.
func (p *originPolicy) setHeaders(h http.Header, r *http.Request) {
	if !p.any && len(p.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !p.allows(origin) {
		return
	}
	if p.any {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsExposed)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// isPreflight reports whether a browser requests permission for another request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers a request for permission. It needs no credentials, because browsers
// send none.
func (p *originPolicy) preflight(h http.Header, r *http.Request) error {
	if !p.allows(r.Header.Get("Origin")) {
		return problem.New(http.StatusForbidden, "cross_origin", "pages of this origin may not call the server")
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	if headers := r.Header.Get("Access-Control-Request-Headers"); areTokens(headers) {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	return nil
}

// areTokens reports whether a text is a list of names of headers.
func areTokens(list string) bool {
	if list == "" {
		return false
	}
	for name := range strings.SplitSeq(list, ",") {
		if !httpguts.ValidHeaderFieldName(strings.TrimSpace(name)) {
			return false
		}
	}
	return true
}

// Policies of content. Pages load only what the server itself serves: an answer of a
// model with the address of an image cannot send data to a third party. Components of
// the web interface set style attributes, so inline styles are accepted, scripts are not.
const (
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; " +
		"worker-src 'self' blob:; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	imagePolicy   = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox" // images of SVG can contain scripts
	dataPolicy    = "default-src 'none'; frame-ancestors 'none'; sandbox"
	secureForYear = "max-age=31536000"
)

const policyHeader = "Content-Security-Policy"

// setSecurityHeaders sets the headers of all responses. A handler may replace them.
// secure means that the client used TLS.
func setSecurityHeaders(h http.Header, secure bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	if secure {
		h.Set("Strict-Transport-Security", secureForYear)
	}
}

// setContentPolicy sets the headers that depend on the type of the content, unless the
// handler did. Only what declares to be cacheable is stored.
func setContentPolicy(h http.Header) {
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	if h.Get(policyHeader) != "" {
		return
	}
	switch mediaTypeOf(h) {
	case "text/html":
		h.Set(policyHeader, pagePolicy)
	case "image/svg+xml":
		h.Set(policyHeader, imagePolicy)
	default:
		h.Set(policyHeader, dataPolicy)
	}
}
