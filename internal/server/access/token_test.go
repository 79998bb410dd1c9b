package access_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const audience = "qtype"

// issuer is an OpenID provider on loopback.
type issuer struct {
	url    string
	mu     sync.Mutex
	server oidctest.Server
	key    *rsa.PrivateKey
	down   atomic.Bool
	asked  atomic.Int64 // requests for keys
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	p := &issuer{key: key}
	p.setKeys(oidctest.PublicKey{PublicKey: key.Public(), KeyID: "one", Algorithm: "RS256"})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "internal detail", http.StatusInternalServerError)
			return
		}
		if r.URL.Path == "/keys" {
			p.asked.Add(1)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.server.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	p.url = s.URL
	p.server.SetIssuer(s.URL)
	return p
}

func (p *issuer) setKeys(keys ...oidctest.PublicKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server.PublicKeys = keys
}

// claims returns the claims of a valid token, with changes. A nil value removes a claim.
func (p *issuer) claims(changes map[string]any) string {
	now := time.Now().Unix()
	all := map[string]any{"iss": p.url, "aud": audience, "sub": "ada", "exp": now + 600, "iat": now}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, _ := json.Marshal(all)
	return string(text)
}

func (p *issuer) token(changes map[string]any) string {
	return oidctest.SignIDToken(p.key, "one", "RS256", p.claims(changes))
}

func (p *issuer) config() access.Config {
	return access.Config{OIDC: access.OIDC{Issuer: p.url, Audience: audience}}
}

// forge returns a token with any header; sign may be nil.
func forge(header, claims string, sign func(signed string) []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	if sign == nil {
		return signed + "."
	}
	return signed + "." + encode(sign(signed))
}

func hmacWith(key []byte) func(string) []byte {
	return func(signed string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	}
}

func bearer(token string) string { return "Authorization: Bearer " + token }

func TestControl_Tokens(t *testing.T) {
	p := newIssuer(t)
	s := start(t, p.config(), nil)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	testkit.Must(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	valid, now := p.token(nil), time.Now().Unix()
	parts := strings.Split(valid, ".")
	const invalid = "the API key or token is not valid"
	tests := []struct{ name, token, want string }{
		{"valid", valid, "user:ada "},
		{"several audiences", p.token(map[string]any{"aud": []string{"other", audience}}), "user:ada "},
		{"roles", p.token(map[string]any{"roles": []any{"admin", 7, "dev"}}), "user:ada admin,dev"},
		{"expired within the skew", p.token(map[string]any{"exp": now - 30}), "user:ada "},
		{"expired", p.token(map[string]any{"exp": now - 90}), "the token is expired"},
		{"without expiry", p.token(map[string]any{"exp": nil}), "the token is expired"},
		{"not yet valid", p.token(map[string]any{"nbf": now + 90}), "the token is not valid yet"},
		{"issued in the future", p.token(map[string]any{"iat": now + 90}), "the token is not valid yet"},
		{"wrong audience", p.token(map[string]any{"aud": "other"}), "the token is for another audience"},
		{"without audience", p.token(map[string]any{"aud": nil}), "the token is for another audience"},
		{"wrong issuer", p.token(map[string]any{"iss": "https://issuer.example.com"}), "the token is from another issuer"},
		{"without name", p.token(map[string]any{"sub": nil}), "the token has no valid claim for the name"},
		{"name is a number", p.token(map[string]any{"sub": 7}), ""},
		{"name with a line break", p.token(map[string]any{"sub": "ada\nrole"}), "the token has no valid claim for the name"},
		{"logout token", p.token(map[string]any{"events": map[string]any{"x": true}}), "the token is a notification"},
		{"logout type", forge(`{"alg":"RS256","kid":"one","typ":"logout+jwt"}`, p.claims(nil), nil), invalid},
		{"alg none", forge(`{"alg":"none"}`, p.claims(nil), nil), invalid},
		{"alg None with a signature", forge(`{"alg":"None"}`, p.claims(nil), hmacWith(nil)), invalid},
		{"without signature", parts[0] + "." + parts[1] + ".", invalid},
		{"other claims", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(p.claims(map[string]any{"sub": "eve"}))) + "." + parts[2], invalid},
		{"HS256 with the public key in PEM", forge(`{"alg":"HS256","kid":"one"}`, p.claims(nil), hmacWith(public)), invalid},
		{"HS256 with the public key in DER", forge(`{"alg":"HS256","kid":"one"}`, p.claims(nil), hmacWith(der)), invalid},
		{"HS256 with the modulus", forge(`{"alg":"HS256","kid":"one"}`, p.claims(nil), hmacWith(p.key.N.Bytes())), invalid},
		{"key of another provider", oidctest.SignIDToken(other, "one", "RS256", p.claims(nil)), invalid},
		{"unknown key", oidctest.SignIDToken(other, "two", "RS256", p.claims(nil)), invalid},
		{"path as key", oidctest.SignIDToken(other, "../../dev/null", "RS256", p.claims(nil)), invalid},
		{"key in the header", forge(`{"alg":"RS256","jwk":{"kty":"RSA"}}`, p.claims(nil), hmacWith(nil)), invalid},
		{"encrypted", "eyJhbGciOiJSU0EtT0FFUCJ9.a.b.c.d", invalid},
		{"malformed", "a.b.c", invalid},
		{"too long", valid + strings.Repeat("A", 17<<10), invalid},
	}
	for _, test := range tests {
		got := s.get(t, "/", bearer(test.token))
		if want := test.want; strings.HasPrefix(want, "user:") && (got.status != 200 || got.body != want) ||
			!strings.HasPrefix(want, "user:") && (got.status != 401 && got.status != 429 && got.status != 431 || got.status == 401 && !strings.Contains(got.body, want)) {
			t.Errorf("%s: got %d %s, want %s", test.name, got.status, got.body, want)
		}
	}
	if got := s.get(t, "/", "X-API-Key: "+valid); got.status == 200 {
		t.Error("a token is accepted as X-API-Key")
	}
	if text := s.log.String(); strings.Contains(text, parts[1]) || strings.Contains(text, parts[2]) {
		t.Error("the log contains a token")
	}
}

// A key and a user of the same name are different principals.
func TestControl_KeyAndUserOfOneName(t *testing.T) {
	p := newIssuer(t)
	cfg := p.config()
	cfg.Keys = "ci:" + ciKey
	s := start(t, cfg, nil)
	key, user := s.get(t, "/", bearer(ciKey)), s.get(t, "/", bearer(p.token(map[string]any{"sub": "ci"})))
	if key.body != "ci " || user.body != "user:ci " {
		t.Errorf("got %q and %q", key.body, user.body)
	}
	if _, err := access.New(access.Config{Keys: "user:ci:" + ciKey}); err != nil {
		t.Fatal(err) // the key user, whose value is ci:…
	}
	a, b := access.Principal{Name: "ci"}, access.Principal{Name: "user:ci"}
	if a.StoredSession("x") == b.StoredSession("x") {
		t.Error("they share sessions")
	}
}

func TestControl_Claims(t *testing.T) {
	p := newIssuer(t)
	cfg := p.config()
	cfg.OIDC.NameClaim, cfg.OIDC.RolesClaim = "email", "realm_access.roles"
	s := start(t, cfg, nil)
	tests := []struct {
		changes map[string]any
		want    string
	}{
		{map[string]any{"email": "ada@example.com", "email_verified": true, "realm_access": map[string]any{"roles": []string{"a"}}}, "user:ada@example.com a"},
		{map[string]any{"email": "ada@example.com", "email_verified": true, "realm_access.roles": "a b"}, "user:ada@example.com a,b"},
		{map[string]any{"email": "ada@example.com", "email_verified": "true"}, "is not verified"},
		{map[string]any{"email": "ada@example.com"}, "is not verified"},
		{map[string]any{"email_verified": true}, "no valid claim"},
	}
	for _, test := range tests {
		if got := s.get(t, "/", bearer(p.token(test.changes))); !strings.Contains(got.body, test.want) {
			t.Errorf("%v: got %s, want %s", test.changes, got.body, test.want)
		}
	}
}

func TestControl_Algorithms(t *testing.T) {
	p := newIssuer(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	p.setKeys(oidctest.PublicKey{PublicKey: p.key.Public(), KeyID: "one", Algorithm: "RS256"},
		oidctest.PublicKey{PublicKey: curve.Public(), KeyID: "two", Algorithm: "ES256"},
		oidctest.PublicKey{PublicKey: edwards.Public(), KeyID: "three", Algorithm: "EdDSA"})
	tokens := map[string]string{"RS256": p.token(nil),
		"ES256": oidctest.SignIDToken(crypto.PrivateKey(curve), "two", "ES256", p.claims(nil)),
		"EdDSA": oidctest.SignIDToken(crypto.PrivateKey(edwards), "three", "EdDSA", p.claims(nil))}
	all := start(t, p.config(), nil)
	cfg := p.config()
	cfg.OIDC.Algorithms = []string{"ES256"}
	one := start(t, cfg, nil)
	for name, token := range tokens {
		if got := all.get(t, "/", bearer(token)); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := one.get(t, "/", bearer(token)); (got.status == 200) != (name == "ES256") {
			t.Errorf("%s where only ES256 is accepted: %d", name, got.status)
		}
	}
}

func TestControl_KeyRotation(t *testing.T) {
	p := newIssuer(t)
	s := start(t, p.config(), nil)
	old := p.token(nil)
	if got := s.get(t, "/", bearer(old)); got.status != 200 {
		t.Fatalf("first key: %d", got.status)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	p.setKeys(oidctest.PublicKey{PublicKey: key.Public(), KeyID: "new", Algorithm: "RS256"})
	fresh := oidctest.SignIDToken(key, "new", "RS256", p.claims(nil))
	access.ForgetAnswers(s.control)
	if got := s.get(t, "/", bearer(fresh)); got.status != 200 {
		t.Errorf("new key: %d", got.status)
	}
	if got := s.get(t, "/", bearer(old)); got.status != 401 {
		t.Errorf("removed key: %d", got.status)
	}
	// Invented keys cause no further requests.
	before := p.asked.Load()
	for i := range 30 {
		s.get(t, "/", bearer(oidctest.SignIDToken(p.key, fmt.Sprint("invented", i), "RS256", p.claims(nil))))
	}
	if got := p.asked.Load(); got != before {
		t.Errorf("30 invented keys caused %d requests", got-before)
	}
	// A key that was only removed ends when the keys are fetched the next time.
	p.setKeys()
	if got := s.get(t, "/", bearer(fresh)); got.status != 200 {
		t.Errorf("cached key: %d", got.status)
	}
	access.ExpireKeys(s.control)
	if got := s.get(t, "/", bearer(fresh)); got.status == 200 {
		t.Errorf("removed key after an hour: %d", got.status)
	}
}

// Known keys stay valid while the provider does not answer; others are not the client's error.
func TestControl_ProviderDown(t *testing.T) {
	p := newIssuer(t)
	s := start(t, p.config(), nil)
	token := p.token(nil)
	p.down.Store(true)
	got := s.get(t, "/", bearer(token))
	if got.status != 503 || got.code() != "authentication_unavailable" || strings.Contains(got.body, "internal detail") {
		t.Errorf("no keys: %d %s", got.status, got.body)
	}
	p.down.Store(false)
	access.ForgetAnswers(s.control)
	got = s.get(t, "/", bearer(token))
	for got.status == 503 && t.Context().Err() == nil { // the failed call may still end
		got = s.get(t, "/", bearer(token))
	}
	if got.status != 200 {
		t.Fatalf("keys: %d %s", got.status, got.body)
	}
	p.down.Store(true)
	access.ExpireKeys(s.control)
	if got := s.get(t, "/", bearer(token)); got.status != 200 {
		t.Errorf("old keys: %d %s", got.status, got.body)
	}
	if _, err := access.New(p.config()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("New: %v", err)
	}
}

func TestNew_InvalidOIDC(t *testing.T) {
	tests := map[string]access.OIDC{
		"needs an audience":        {Issuer: "https://issuer.example.com"},
		"needs an issuer":          {Audience: "qtype"},
		"is not an https address":  {Issuer: "http://issuer.example.com", Audience: "qtype"},
		"is not accepted; choose":  {Issuer: "https://issuer.example.com", Audience: "qtype", Algorithms: []string{"HS256"}},
		`"none" is not accepted; `: {Issuer: "https://issuer.example.com", Audience: "qtype", Algorithms: []string{"RS256", "none"}},
	}
	for want, cfg := range tests {
		if _, err := access.New(access.Config{OIDC: cfg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Clients find the provider of tokens by the challenge (RFC 9728).
func TestControl_Metadata(t *testing.T) {
	p := newIssuer(t)
	s := start(t, p.config(), nil)
	refused := s.get(t, "/mcp")
	_, address, _ := strings.Cut(refused.header.Get("WWW-Authenticate"), `resource_metadata="`)
	address, _, _ = strings.Cut(address, `"`)
	path, ok := strings.CutPrefix(address, s.url)
	if !ok || refused.status != 401 {
		t.Fatalf("status %d, challenge %q", refused.status, refused.header.Get("WWW-Authenticate"))
	}
	var got struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
	}
	described := s.get(t, path)
	if err := json.Unmarshal([]byte(described.body), &got); err != nil || got.Resource != s.url+"/mcp" || len(got.Servers) != 1 || got.Servers[0] != p.url {
		t.Errorf("%s: %d %s", path, described.status, described.body)
	}
	if keys := start(t, access.Config{Keys: "ci:" + ciKey}, nil); keys.get(t, path).status != 401 {
		t.Error("a server without an issuer describes its resources")
	}
}
