package access

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

// A browser cannot add a header to the requests of its address bar. It gets a page that
// sends the key or token once. A cookie keeps it: scripts cannot read it, and the browser
// sends it only with requests of this server's pages and with links to them. The server
// stores nothing: each request with the cookie is authenticated as one with a header.
const (
	signInPath  = "/sign-in"
	signOutPath = "/sign-out"
	cookieName  = "qtype-credential"
	maxCookie   = 3800    // bytes; browsers store 4096 with the name and attributes
	maxSignIn   = 8 << 10 // bytes of the form
)

// cookieOf returns the name of the cookie. Over TLS its prefix makes browsers refuse
// cookies of other hosts of the domain.
func cookieOf(secure bool) string {
	if secure {
		return "__Host-" + cookieName
	}
	return cookieName
}

// signInCookie returns the credential of the cookie, empty for none.
func signInCookie(r *http.Request, secure bool) string {
	cookie, err := r.Cookie(cookieOf(secure))
	if err != nil {
		return ""
	}
	secret, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return string(secret)
}

// isNavigation reports whether a browser requests a page, and not a script data.
func isNavigation(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// signIn handles the requests of the sign-in page, and reports whether r is one.
func (c *Control) signIn(w *response, r *http.Request, address string) bool {
	if !c.Authenticated() || r.Method != http.MethodPost || r.URL.Path != signInPath && r.URL.Path != signOutPath {
		return false
	}
	if err := c.origins.checkBrowser(r); err != nil {
		c.refuse(w, r, address, "", "", err)
		return true
	}
	value := ""
	if r.URL.Path == signInPath {
		var ok bool
		if value, ok = c.readSignIn(w, r, address); !ok {
			return true
		}
	}
	secure := c.proxies.secure(r)
	cookie := &http.Cookie{Name: cookieOf(secure), Value: value, Path: "/", HttpOnly: true, //nolint:gosec // without TLS, on loopback, browsers would not store a secure cookie
		SameSite: http.SameSiteLaxMode, Secure: secure}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
	w.Header().Set("Location", c.proxies.mountPoint(r)+"/")
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// readSignIn returns the value of the cookie for the credential of a form. It answers
// the request if the credential is not valid.
func (c *Control) readSignIn(w *response, r *http.Request, address string) (value string, ok bool) {
	form := r.Clone(r.Context())
	if w.body != nil {
		form.Body = http.MaxBytesReader(w, w.body, maxSignIn)
	}
	if err := form.ParseForm(); err != nil {
		c.refuse(w, r, address, "", "malformed form", problem.New(http.StatusBadRequest, "malformed_form", "the form of the sign-in page is malformed"))
		return "", false
	}
	secret := strings.TrimSpace(form.PostForm.Get("credential"))
	cred, err := validCredential(credential{secret: secret, cookie: true})
	if err == nil {
		_, err = c.identify(r.Context(), cred)
	}
	value = base64.RawURLEncoding.EncodeToString([]byte(secret))
	if err == nil && len(value) <= maxCookie {
		return value, true
	}
	p := problem.New(http.StatusUnauthorized, "invalid_credential", "the API key or token is not valid")
	if err == nil {
		p.Detail = "the token is too long for a browser"
	}
	if wait, ok := c.failures.take(address); !ok {
		p = problem.New(http.StatusTooManyRequests, "too_many_failures", "too many requests with invalid credentials")
		p.RetryAfter = wait
	}
	c.audit.refused(r, address, "", "sign-in", p)
	if p.Status == http.StatusUnauthorized {
		c.writeSignInPage(w, r, p)
	} else {
		problem.Write(w, p)
	}
	return "", false
}

// signInPage has no script and only an inline style, which the policy of pages accepts.
var signInPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("sign-in").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { min-height: 90vh; margin: 0; display: grid; place-items: center }
form { display: grid; gap: .75rem; width: min(22rem, 90vw) }
h1 { font-size: 1.25rem; margin: 0 }
input, button { font: inherit; padding: .5rem .75rem; border: 1px solid GrayText; border-radius: .5rem }
p { margin: 0 }
</style>
</head>
<body>
<main>
<form method="post" action="{{.Mount}}/sign-in">
<h1>Sign in</h1>
{{if .Message}}<p role="alert">{{.Message}}</p>{{end}}
<label for="credential">API key or token</label>
<input id="credential" name="credential" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>
</main>
</body>
</html>
`))
})

// writeSignInPage answers the navigation of a browser without a valid credential.
func (c *Control) writeSignInPage(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	page := struct{ Mount, Message string }{Mount: c.proxies.mountPoint(r)}
	if p.Code != "unauthorized" {
		page.Message = p.Detail
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// With no-referrer, browsers send the form with the origin "null", which is refused.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("WWW-Authenticate", c.challenge(r, p))
	w.WriteHeader(p.Status)
	_ = signInPage().Execute(w, page) // fails only if the client is gone
}

// metadataPath is where clients find out which provider issues tokens for a resource (RFC 9728). The
// path of the resource, such as /mcp, follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is the description of a resource (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"` // its address
	Issuers  []string `json:"authorization_servers"`
	Methods  []string `json:"bearer_methods_supported"`
}

// isMetadata reports whether a request reads the description of a resource, which needs no
// credential. Without an issuer there is none.
func (c *Control) isMetadata(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, metadataPath)
	return ok && (rest == "" || rest[0] == '/') && r.Method == http.MethodGet && c.tokens != nil
}

// writeMetadata writes the description of the resource that a request names.
func (c *Control) writeMetadata(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Access-Control-Allow-Origin", "*") // it is public
	resource := c.Address(r) + strings.TrimPrefix(r.URL.EscapedPath(), metadataPath)
	_ = json.NewEncoder(w).Encode(resourceMetadata{resource, []string{c.tokens.cfg.Issuer}, []string{"header"}}) // fails only if the client is gone
}

// metadataOf returns the address of the description of the resource of a request, empty without an
// issuer, and for a host that cannot be part of a header.
func (c *Control) metadataOf(r *http.Request) string {
	if c.tokens == nil || strings.ContainsAny(r.Host, "\"\\ ") {
		return ""
	}
	path := ""
	if r.URL.Path == "/mcp" {
		path = r.URL.Path
	}
	return c.Address(r) + metadataPath + path
}
