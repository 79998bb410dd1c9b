package access

import "net/http"

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
