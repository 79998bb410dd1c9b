package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/qtype-dev/qtype/spec"
)

const (
	defaultSkew = time.Minute
	maxRoles    = 1000
)

// tokenVerifier accepts tokens of one OpenID provider. It is safe for concurrent use.
type tokenVerifier struct {
	verifier *oidc.IDTokenVerifier
	keys     *keySet
	cfg      OIDC
}

// signatureAlgorithms are those with a public key. With others, such as HS256, everyone
// who knows the public key could create tokens.
func signatureAlgorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
		oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

// newTokenVerifier reads the configuration of the provider from its discovery document.
// It returns nil without an issuer.
func newTokenVerifier(cfg OIDC, client *http.Client) (*tokenVerifier, error) {
	if cfg.Issuer == "" {
		if cfg.Audience != "" {
			return nil, errors.New("an OpenID audience needs an issuer")
		}
		return nil, nil
	}
	if err := checkOIDC(&cfg); err != nil {
		return nil, err
	}
	transport := &keyTransport{next: client.Transport}
	guarded := &http.Client{Transport: transport, Timeout: providerTimeout}
	ctx := oidc.ClientContext(context.Background(), guarded)
	provider, err := oidc.NewProvider(ctx, cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the OpenID issuer %s: %s", cfg.Issuer, firstLine(err))
	}
	var metadata struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&metadata); err != nil || metadata.Keys == "" {
		return nil, fmt.Errorf("the OpenID issuer %s has no jwks_uri", cfg.Issuer)
	}
	keys := newKeySet(ctx, metadata.Keys, transport)
	return &tokenVerifier{keys: keys, cfg: cfg, verifier: oidc.NewVerifier(cfg.Issuer, keys, &oidc.Config{
		ClientID: cfg.Audience, SupportedSigningAlgs: cfg.Algorithms,
		SkipExpiryCheck: true, // checkTimes has a configurable skew
	})}, nil
}

// checkOIDC checks a configuration and sets its defaults.
func checkOIDC(cfg *OIDC) error {
	u, err := url.Parse(cfg.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return fmt.Errorf("the OpenID issuer %q is not an https address", cfg.Issuer)
	}
	if cfg.Audience == "" {
		return errors.New("an OpenID issuer needs an audience: without it tokens for other applications would be accepted")
	}
	known := signatureAlgorithms()
	for _, algorithm := range cfg.Algorithms {
		if !slices.Contains(known, algorithm) {
			return fmt.Errorf("the algorithm %q is not accepted; choose from %s", algorithm, strings.Join(known, ", "))
		}
	}
	if len(cfg.Algorithms) == 0 {
		cfg.Algorithms = known
	}
	set(&cfg.NameClaim, "sub")
	set(&cfg.RolesClaim, "roles")
	set(&cfg.Skew, defaultSkew)
	cfg.Skew = max(cfg.Skew, 0)
	return nil
}

// verify returns the principal of a token. Errors are refusals, or errTokensOff.
func (v *tokenVerifier) verify(ctx context.Context, token string) (Principal, error) {
	if !isAccessType(token) {
		return Principal{}, &refusal{reason: "malformed token"}
	}
	id, err := v.verifier.Verify(ctx, token)
	if err != nil {
		return Principal{}, v.explain(ctx, token)
	}
	claims := claimSet{}
	if err := id.Claims(&claims); err != nil {
		return Principal{}, &refusal{reason: "malformed claims"}
	}
	if err := v.checkTimes(claims); err != nil {
		return Principal{}, err
	}
	if claims["events"] != nil {
		return Principal{}, &refusal{reason: "the token is a notification", signed: true} // RFC 8417, such as a logout token
	}
	return v.principal(claims)
}

// isAccessType reports whether the header of a token declares a type that identifies a
// caller. Logout tokens, for example, have the same issuer and audience.
func isAccessType(token string) bool {
	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Type string `json:"typ"`
	}
	if err != nil || json.Unmarshal(raw, &header) != nil {
		return false
	}
	switch strings.TrimPrefix(strings.ToLower(header.Type), "application/") {
	case "", "jwt", "at+jwt":
		return true
	}
	return false
}

// explain returns why the library refused a token. Its messages may contain parts of the
// token, so they are not used.
func (v *tokenVerifier) explain(ctx context.Context, token string) error {
	lenient := oidc.NewVerifier(v.cfg.Issuer, v.keys, &oidc.Config{SupportedSigningAlgs: v.cfg.Algorithms,
		SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true})
	id, lenientErr := lenient.Verify(ctx, token)
	switch {
	case lenientErr != nil && v.keys.unavailable():
		return errTokensOff
	case lenientErr != nil:
		return &refusal{reason: "invalid token or signature"}
	case id.Issuer != v.cfg.Issuer:
		return &refusal{reason: "the token is from another issuer", signed: true}
	case !slices.Contains(id.Audience, v.cfg.Audience):
		return &refusal{reason: "the token is for another audience", signed: true}
	}
	return errTokensOff // the keys came only now
}

// checkTimes checks expiry and start of a token.
func (v *tokenVerifier) checkTimes(claims claimSet) error {
	now, skew := float64(time.Now().UnixMilli())/1000, v.cfg.Skew.Seconds()
	expiry, ok := claims.seconds("exp")
	if !ok || expiry+skew < now {
		return &refusal{reason: "the token is expired", signed: true}
	}
	for _, claim := range []string{"nbf", "iat"} {
		if at, ok := claims.seconds(claim); ok && at-skew > now {
			return &refusal{reason: "the token is not valid yet", signed: true}
		}
	}
	return nil
}

// principal returns the caller that the claims name.
func (v *tokenVerifier) principal(claims claimSet) (Principal, error) {
	name, _ := claims.lookup(v.cfg.NameClaim).(string)
	if !spec.IsPrincipalName(name) {
		return Principal{}, &refusal{reason: "the token has no valid claim for the name", signed: true}
	}
	if v.cfg.NameClaim == "email" && claims["email_verified"] != true {
		return Principal{}, &refusal{reason: "the email address of the token is not verified", signed: true}
	}
	return Principal{Name: spec.UserPrefix + name, Roles: claims.texts(v.cfg.RolesClaim)}, nil
}

// claimSet has the claims of a verified token.
type claimSet map[string]any

// lookup returns a claim by its name or by its path, nil for none.
func (c claimSet) lookup(path string) any {
	if value, ok := c[path]; ok {
		return value
	}
	head, rest, nested := strings.Cut(path, ".")
	if inner, ok := c[head].(map[string]any); ok && nested {
		return claimSet(inner).lookup(rest)
	}
	return nil
}

// seconds returns a time in seconds since 1970.
func (c claimSet) seconds(claim string) (float64, bool) {
	at, ok := c[claim].(float64)
	return at, ok && !math.IsNaN(at)
}

// texts returns a claim that is a list of texts, or one text of words.
func (c claimSet) texts(path string) []string {
	switch value := c.lookup(path).(type) {
	case string:
		return validRoles(strings.Fields(value))
	case []any:
		var list []string
		for _, one := range value {
			if text, ok := one.(string); ok {
				list = append(list, text)
			}
		}
		return validRoles(list)
	}
	return nil
}

// validRoles returns the roles that an allow list can name.
func validRoles(list []string) []string {
	list = slices.DeleteFunc(list, func(role string) bool { return !spec.IsPrincipalName(role) })
	return list[:min(len(list), maxRoles)]
}

// firstLine returns the first line of an error, without its rest, which may be a page.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if len(line) > maxLoggedPath {
		line = line[:maxLoggedPath] + "…"
	}
	return line
}

const (
	keysPerFetch = 10 * time.Second // at most one request for keys in this time
	keysMaxAge   = time.Hour        // after which keys are fetched again, so that removed keys end
	maxKeySet    = 1 << 20          // bytes
)

// keySet has the signing keys of the provider. Keys are fetched when a token names an
// unknown one, and after an hour. If the provider does not answer, known keys stay valid.
type keySet struct {
	ctx       context.Context //nolint:containedctx // the library reads its HTTP client from a context
	address   string
	transport *keyTransport

	mu      sync.Mutex
	current *oidc.RemoteKeySet
	fetched time.Time
}

func newKeySet(ctx context.Context, address string, transport *keyTransport) *keySet {
	return &keySet{ctx: ctx, address: address, transport: transport,
		current: oidc.NewRemoteKeySet(ctx, address), fetched: time.Now()}
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	k.mu.Lock()
	current, old := k.current, time.Since(k.fetched) > keysMaxAge
	if old {
		k.fetched = time.Now() // only this call replaces the keys
	}
	k.mu.Unlock()
	if !old {
		return current.VerifySignature(ctx, token)
	}
	renewed := oidc.NewRemoteKeySet(k.ctx, k.address)
	payload, err := renewed.VerifySignature(ctx, token)
	if err != nil && k.unavailable() {
		return current.VerifySignature(ctx, token)
	}
	k.mu.Lock()
	k.current = renewed
	k.mu.Unlock()
	return payload, err
}

// unavailable reports whether the last request for keys failed.
func (k *keySet) unavailable() bool {
	k.transport.mu.Lock()
	defer k.transport.mu.Unlock()
	return k.transport.failed
}

// keyTransport answers repeated requests from memory for a short time, so that tokens
// with invented keys cannot make the server call the provider for each of them. It also
// limits the size of answers.
type keyTransport struct {
	next http.RoundTripper // nil for the default

	mu     sync.Mutex
	last   map[string]*storedAnswer // by address: discovery and keys
	failed bool                     // the last request
}

type storedAnswer struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip returns a stored answer of the last seconds, or sends the request. Requests
// wait for each other.
func (t *keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	address := r.URL.String()
	stored := t.last[address]
	if stored == nil || time.Since(stored.at) >= keysPerFetch {
		stored = t.fetch(r)
		if t.last == nil || len(t.last) > 10 {
			t.last = map[string]*storedAnswer{}
		}
		t.last[address] = stored
	}
	t.failed = stored.err != nil || stored.status != http.StatusOK
	if stored.err != nil {
		return nil, stored.err
	}
	return &http.Response{StatusCode: stored.status, Status: http.StatusText(stored.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: stored.header, Body: io.NopCloser(bytes.NewReader(stored.body)), ContentLength: int64(len(stored.body)), Request: r}, nil
}

// fetch sends a request.
func (t *keyTransport) fetch(r *http.Request) *storedAnswer {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	answer := &storedAnswer{at: time.Now()}
	response, err := next.RoundTrip(r)
	if err != nil {
		answer.err = err
		return answer
	}
	defer response.Body.Close()
	answer.status, answer.header = response.StatusCode, response.Header
	answer.body, answer.err = io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if answer.err == nil && len(answer.body) > maxKeySet {
		answer.err = errors.New("the answer of the OpenID provider is too large")
	}
	return answer
}
