package access

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

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
