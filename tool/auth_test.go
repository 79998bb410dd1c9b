package tool_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// tokens is a token server (RFC 6749): it issues t-1, t-2, … to a client that it knows,
// and rejects others as the RFC specifies.
type tokens struct {
	*httptest.Server
	given   atomic.Int32
	expires int // seconds
}

func tokenServer(t *testing.T, expires int) *tokens {
	t.Helper()
	s := &tokens{expires: expires}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		id, secret, inHeader := r.BasicAuth()
		if !inHeader { // the other method of the RFC
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.Form.Get("grant_type") != "client_credentials" ||
			r.Form.Get("scope") != "read write" || id != "client" || secret != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": "invalid_client", "error_description": "no client has the secret `+secret+`"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"access_token": "t-%d", "token_type": "bearer", "expires_in": %d}`, s.given.Add(1), s.expires)
	}))
	t.Cleanup(s.Close)
	return s
}

func grantAuth(s *tokens, secret string) spec.Ref[spec.Auth] {
	auth := &spec.OAuth2Auth{ClientID: "client", ClientSecret: spec.NewSecret(secret), TokenURL: s.URL + "/token", Scopes: []string{"read", "write"}}
	auth.ID = "grant"
	return spec.Ref[spec.Auth]{ID: auth.ID, To: auth}
}

// authorized lists the Authorization headers of the calls.
func (s *server) authorized() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, h := range s.headers {
		all = append(all, h.Get("Authorization"))
	}
	return all
}

func TestOAuth2_SharesToken(t *testing.T) {
	issuer := tokenServer(t, 3600)
	s := serve(t, answer(200, "application/json", `{}`))
	f := s.declare(t, func(d *spec.APITool) { d.Auth = grantAuth(issuer, "s3cret") })
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if _, err := f.Call(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := issuer.given.Load(); n != 1 {
		t.Errorf("%d tokens were asked for", n)
	}
	for _, got := range s.authorized() {
		if got != "Bearer t-1" {
			t.Errorf("a call carried %q", got)
		}
	}
}

func TestOAuth2_RenewsExpiredToken(t *testing.T) {
	issuer := tokenServer(t, 1) // expires at once: the client renews a token ten seconds early
	s := serve(t, answer(200, "application/json", `{}`))
	f := s.declare(t, func(d *spec.APITool) { d.Auth = grantAuth(issuer, "s3cret") })
	for range 2 {
		if _, err := f.Call(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(s.authorized(), ", "); got != "Bearer t-1, Bearer t-2" {
		t.Errorf("the calls carried %s", got)
	}
}

func TestOAuth2_RenewsRejectedTokenOnce(t *testing.T) {
	issuer := tokenServer(t, 3600)
	s := serve(t, answer(401, "text/plain", "t-1 was revoked"), answer(200, "application/json", `{"done": true}`), answer(401, "text/plain", "no t-2, no t-3"))
	f := s.declare(t, func(d *spec.APITool) {
		d.Method, d.Inputs, d.Auth = "POST", []*spec.Variable{variable("n", "int")}, grantAuth(issuer, "s3cret")
	})
	if got, err := f.Call(t.Context(), map[string]any{"n": 7}); err != nil || fmt.Sprint(got) != "map[done:true]" {
		t.Fatalf("got %v, %v", got, err)
	}
	if calls := s.seen(); len(calls) != 2 || calls[1].Body != `{"n":7}` {
		t.Errorf("the calls were %v", calls)
	}
	_, err := f.Call(t.Context(), map[string]any{"n": 8})
	if err == nil || !strings.Contains(err.Error(), "HTTP 401: the server rejected auth grant") || strings.Contains(err.Error(), "t-3") {
		t.Errorf("a server that refuses every token: %v", err)
	}
	if got := strings.Join(s.authorized(), ", "); got != "Bearer t-1, Bearer t-2, Bearer t-2, Bearer t-3" {
		t.Errorf("the calls carried %s", got)
	}
}

func TestOAuth2_TokenServerErrors(t *testing.T) {
	issuer := tokenServer(t, 3600)
	moved := httptest.NewServer(http.RedirectHandler(issuer.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	for _, c := range []struct {
		at, secret, want string
	}{
		{issuer.URL, "wr0ng", "auth grant: no token from the token server: HTTP 401: invalid_client (no client has the secret ***)"},
		{moved.URL, "s3cret", "auth grant: no token from the token server: HTTP 307"},
		{"http://127.0.0.1:1", "s3cret", "auth grant: no token from the token server: connection refused"},
	} {
		s := serve(t, answer(200, "application/json", `{}`))
		f := s.declare(t, func(d *spec.APITool) {
			d.Auth = grantAuth(&tokens{Server: &httptest.Server{URL: c.at}}, c.secret)
		})
		if _, err := f.Call(t.Context(), nil); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.at, err, c.want)
		}
		if len(s.seen()) > 0 {
			t.Errorf("%s: a call was made without a token", c.at)
		}
	}
}

func TestOAuth2_PrivateTokenServer(t *testing.T) {
	issuer := tokenServer(t, 3600)
	d := &spec.APITool{Endpoint: "https://api.example/x", Auth: grantAuth(issuer, "s3cret")}
	d.ID, d.Name = "f", "f"
	f, err := tool.NewAPI(d, tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "allow_private") || issuer.given.Load() > 0 {
		t.Errorf("a token was asked for on this machine: %v", err)
	}
}

func TestAuth_KeyLocation(t *testing.T) {
	basic := &spec.BasicAuth{Username: "ada", Password: spec.NewSecret("pass:word")}
	for name, c := range map[string]struct {
		auth spec.Auth
		line string // of the request
		want http.Header
	}{
		"a custom header":   {&spec.APIKeyAuth{APIKey: spec.NewSecret("k-1"), Header: "x-weather-key"}, "GET /x?q=1", http.Header{"X-Weather-Key": {"k-1"}}},
		"the query":         {&spec.APIKeyAuth{APIKey: spec.NewSecret("k 2&"), Query: "app id"}, "GET /x?q=1&app+id=k+2%26", http.Header{}},
		"user and password": {basic, "GET /x?q=1", http.Header{"Authorization": {"Basic YWRhOnBhc3M6d29yZA=="}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer(403, "text/plain", "not with YWRhOnBhc3M6d29yZA==, pass:word, k-1, k 2& or k+2%26"))
			f := s.declare(t, func(d *spec.APITool) {
				d.Endpoint = s.URL + "/x?q=1"
				d.Auth = spec.Ref[spec.Auth]{ID: "proof", To: c.auth}
			})
			_, err := f.Call(t.Context(), nil)
			if got := s.seen()[0].Line; got != c.line {
				t.Errorf("the call was %s, want %s", got, c.line)
			}
			for header, value := range c.want {
				if got := s.headers[0].Get(header); got != value[0] {
					t.Errorf("%s was %q, want %q", header, got, value[0])
				}
			}
			for _, proof := range map[string][]string{"a custom header": {"k-1"}, "the query": {"k 2&", "k+2"}, "user and password": {"YWRh", "pass:word"}}[name] {
				if strings.Contains(fmt.Sprint(err), proof) {
					t.Errorf("the error shows %s: %v", proof, err)
				}
			}
		})
	}
}

func TestAuth_Errors(t *testing.T) {
	for want, auth := range map[string]spec.Auth{
		"has a header and a query":                   &spec.APIKeyAuth{APIKey: spec.NewSecret("k"), Header: "A", Query: "b"},
		`invalid header name "Host"`:                 &spec.APIKeyAuth{APIKey: spec.NewSecret("k"), Header: "Host"},
		`invalid header name "A B"`:                  &spec.APIKeyAuth{APIKey: spec.NewSecret("k"), Header: "A B"},
		"the query of the call and auth  both set q": &spec.APIKeyAuth{APIKey: spec.NewSecret("k"), Query: "q"},
		"token_url is not an http or https address":  &spec.OAuth2Auth{ClientID: "c", ClientSecret: spec.NewSecret("s"), TokenURL: "token"},
		"auth  is empty":                             &spec.BasicAuth{Username: "ada"},
	} {
		d := &spec.APITool{Endpoint: "https://api.example/x?q=1", Auth: spec.Ref[spec.Auth]{ID: "proof", To: auth}}
		d.ID, d.Name = "f", "f"
		if _, err := tool.NewAPI(d, tool.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
