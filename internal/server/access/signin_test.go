package access_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const formType = "Content-Type: application/x-www-form-urlencoded"

// A browser gets a page to sign in, and a cookie that only pages of the server can use.
func TestControl_SignIn(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey}, nil)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	page := s.get(t, "/", "Accept: text/html", "Sec-Fetch-Mode: navigate")
	if page.status != 401 || !strings.Contains(page.body, `action="/sign-in"`) || !strings.Contains(page.header.Get("Content-Security-Policy"), "form-action 'self'") {
		t.Errorf("navigation: %d %s", page.status, page.body)
	}
	if got := page.header.Get("Referrer-Policy"); got != "same-origin" { // else browsers send the form with the origin "null"
		t.Errorf("the Referrer-Policy of the sign-in page is %q", got)
	}
	if got := s.get(t, "/flows", "Accept: */*", "Sec-Fetch-Mode: cors"); got.code() != "unauthorized" {
		t.Errorf("script: %d %s", got.status, got.body)
	}
	signIn := func(credential string, headers ...string) answer {
		return s.send(t, http.MethodPost, "/sign-in", strings.NewReader("credential="+credential), append(headers, formType)...)
	}
	if got := signIn("wrong-0123456789"); got.status != 401 || got.header.Get("Set-Cookie") != "" || strings.Contains(got.body, "wrong-0123456789") {
		t.Errorf("wrong key: %d %v", got.status, got.header)
	}
	if got := signIn(ciKey, "Origin: https://attacker.example", "Sec-Fetch-Site: cross-site"); got.status != 403 {
		t.Errorf("form of another site: %d", got.status)
	}
	if got := signIn(strings.Repeat("a", 10<<10)); got.status != 400 {
		t.Errorf("large form: %d", got.status)
	}
	got := signIn(ciKey)
	if got.status != 303 || got.header.Get("Location") != "/" {
		t.Fatalf("sign-in: %d %s", got.status, got.body)
	}
	cookie := got.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie has no %s: %s", part, strings.SplitN(cookie, "=", 2)[0])
		}
	}
	value, _, _ := strings.Cut(cookie, ";")
	if got := s.send(t, http.MethodPost, "/flows", nil, "Cookie: "+value, "Sec-Fetch-Site: same-origin"); got.body != "ci " {
		t.Errorf("with the cookie: %d %s", got.status, got.body)
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if got := s.send(t, http.MethodPost, "/flows", nil, "Cookie: "+value, "Sec-Fetch-Site: "+site); got.status != 403 {
			t.Errorf("%s with the cookie: %d", site, got.status)
		}
	}
	if got := s.get(t, "/", "Cookie: qtype-credential=!", "Sec-Fetch-Mode: cors"); got.status != 401 {
		t.Errorf("malformed cookie: %d", got.status)
	}
	out := s.send(t, http.MethodPost, "/sign-out", nil)
	if out.status != 303 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("sign-out: %d %v", out.status, out.header)
	}
	if text := s.log.String(); strings.Contains(text, "wrong-0123456789") || strings.Contains(text, ciKey) {
		t.Errorf("log: %s", text)
	}
}

// Over TLS the cookie is secure and bound to the host.
func TestControl_SignInOverTLS(t *testing.T) {
	cert, key := writeCertificate(t, "localhost")
	p := newIssuer(t)
	cfg := p.config()
	cfg.TLS = access.TLS{CertFile: cert, KeyFile: key}
	s := start(t, cfg, nil)
	s.client = insecureClient(t)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := s.send(t, http.MethodPost, "/sign-in", strings.NewReader("credential="+p.token(nil)), formType)
	cookie := got.header.Get("Set-Cookie")
	if got.status != 303 || !strings.HasPrefix(cookie, "__Host-qtype-credential=") || !strings.Contains(cookie, "; Secure") {
		t.Fatalf("sign-in: %d", got.status)
	}
	value, _, _ := strings.Cut(cookie, ";")
	if got := s.get(t, "/", "Cookie: "+value); got.body != "user:ada " {
		t.Errorf("with the cookie: %d %s", got.status, got.body)
	}
	if got := s.send(t, http.MethodPost, "/sign-in", strings.NewReader("credential="+p.token(map[string]any{"x": strings.Repeat("x", 3000)})), formType); got.status != 401 || !strings.Contains(got.body, "too long for a browser") {
		t.Errorf("long token: %d %s", got.status, got.body)
	}
}

// The page works where another program mounts the server below a path.
func TestControl_SignInBelowPath(t *testing.T) {
	control, err := access.New(access.Config{Keys: "ci:" + ciKey, Logger: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/assistant/", http.StripPrefix("/assistant", control.Wrap(http.HandlerFunc(writeCaller))))
	outer := httptest.NewServer(mux)
	t.Cleanup(outer.Close)
	s := &server{url: outer.URL, client: outer.Client()}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if got := s.get(t, "/assistant/flows", "Sec-Fetch-Mode: navigate"); !strings.Contains(got.body, `action="/assistant/sign-in"`) {
		t.Errorf("page: %s", got.body)
	}
	got := s.send(t, http.MethodPost, "/assistant/sign-in", strings.NewReader("credential="+ciKey), formType)
	if got.status != 303 || got.header.Get("Location") != "/assistant/" {
		t.Errorf("sign-in: %d %s", got.status, got.header.Get("Location"))
	}
}

// The page works behind a proxy that removes a prefix.
func TestControl_SignInBehindProxy(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey, Proxies: []string{"127.0.0.1"}}, nil)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if got := s.get(t, "/flows", "Sec-Fetch-Mode: navigate", "X-Forwarded-Prefix: /bot"); !strings.Contains(got.body, `action="/bot/sign-in"`) {
		t.Errorf("page: %s", got.body)
	}
	got := s.send(t, http.MethodPost, "/sign-in", strings.NewReader("credential="+ciKey), formType, "X-Forwarded-Prefix: /bot")
	if got.status != 303 || got.header.Get("Location") != "/bot/" {
		t.Errorf("sign-in: %d %s", got.status, got.header.Get("Location"))
	}
}

// Without authentication there is nothing to sign in to.
func TestControl_NoSignIn(t *testing.T) {
	s := start(t, access.Config{}, nil)
	if got := s.send(t, http.MethodPost, "/sign-in", strings.NewReader("credential=a"), formType); got.status != 200 || got.header.Get("Set-Cookie") != "" {
		t.Errorf("got %d", got.status)
	}
}
