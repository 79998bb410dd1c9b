package access

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

const (
	keyHeader     = "X-Api-Key"
	maxCredential = 16 << 10 // bytes
)

// credential is what a request proves its caller with. It is never logged.
type credential struct {
	secret string
	keys   bool // only a key is accepted, not a token
	cookie bool // from the sign-in page: sent by the browser with every request
}

// String hides the secret, if a credential is printed by accident.
func (credential) String() string { return "***" }

// GoString hides the secret.
func (credential) GoString() string { return "***" }

// refusal is why a credential is refused: a fixed text without parts of it.
type refusal struct {
	reason string
	signed bool // the provider signed the token, so the caller may know the reason
}

func (r *refusal) Error() string { return r.reason }

var (
	errNoCredential   = &refusal{reason: "no credential"}
	errTwoCredentials = &refusal{reason: "several credentials", signed: true}
	errUnknownKey     = &refusal{reason: "unknown key"}
	errTokensOff      = errors.New("the keys of the OpenID issuer are not available")
)

// readCredential returns the credential of a request. secure means that the client used
// TLS.
func readCredential(r *http.Request, secure bool) (credential, error) {
	bearers, keys := r.Header["Authorization"], r.Header[keyHeader]
	switch {
	case len(bearers)+len(keys) > 1:
		return credential{}, errTwoCredentials
	case len(keys) == 1:
		return validCredential(credential{secret: keys[0], keys: true})
	case len(bearers) == 1:
		scheme, secret, _ := strings.Cut(bearers[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return credential{}, &refusal{reason: "unsupported scheme of authorization", signed: true}
		}
		return validCredential(credential{secret: strings.TrimLeft(secret, " ")})
	}
	if secret := signInCookie(r, secure); secret != "" {
		return validCredential(credential{secret: secret, cookie: true})
	}
	return credential{}, errNoCredential
}

// validCredential refuses what no key and no token can be.
func validCredential(c credential) (credential, error) {
	if c.secret == "" || len(c.secret) > maxCredential || !isHeaderText(c.secret) {
		return credential{}, &refusal{reason: "malformed credential"}
	}
	return c, nil
}

// identify returns the caller that a credential belongs to.
func (c *Control) identify(ctx context.Context, cred credential) (Principal, error) {
	if c.keys != nil {
		if name, ok := c.keys.find(cred.secret); ok {
			return Principal{Name: name}, nil
		}
	}
	if c.tokens != nil && !cred.keys && strings.Count(cred.secret, ".") == 2 {
		return c.tokens.verify(ctx, cred.secret)
	}
	return Principal{}, errUnknownKey
}

// authenticate returns the caller of a request, and whether the browser sent the
// credential by itself. Errors are problems; reason is for the log.
func (c *Control) authenticate(r *http.Request, address string) (p Principal, ambient bool, reason string, err error) {
	if !c.Authenticated() {
		return Principal{}, true, "", nil
	}
	cred, err := readCredential(r, c.proxies.secure(r))
	if err == nil {
		p, err = c.identify(r.Context(), cred)
	}
	if err == nil {
		return p, cred.cookie, "", nil
	}
	if errors.Is(err, errTokensOff) {
		return p, false, err.Error(), problem.New(http.StatusServiceUnavailable, "authentication_unavailable", "%s", err)
	}
	refused, _ := errors.AsType[*refusal](err)
	if refused == errNoCredential || refused != nil && refused.signed { // not a guess
		return p, false, err.Error(), unauthorized(err)
	}
	// Valid credentials pass even now: clients behind one proxy share an address.
	wait, ok := c.failures.take(address)
	if ok {
		return p, false, err.Error(), unauthorized(err)
	}
	limited := problem.New(http.StatusTooManyRequests, "too_many_failures", "too many requests with invalid credentials")
	limited.RetryAfter = wait
	return p, false, err.Error(), limited
}

// unauthorized returns the problem of a refused credential. Only a caller with a token
// of the provider learns why it is refused.
func unauthorized(err error) *problem.Problem {
	refused, ok := errors.AsType[*refusal](err)
	switch {
	case errors.Is(err, errNoCredential):
		return problem.New(http.StatusUnauthorized, "unauthorized", "send an API key or token as Authorization: Bearer, or a key as X-API-Key")
	case ok && refused.signed:
		return problem.New(http.StatusUnauthorized, "invalid_credential", "%s", refused.reason)
	}
	return problem.New(http.StatusUnauthorized, "invalid_credential", "the API key or token is not valid")
}

// challenge is the value of WWW-Authenticate (RFC 6750, RFC 9728).
func (c *Control) challenge(r *http.Request, p *problem.Problem) string {
	text := `Bearer realm="qtype"`
	if address := c.metadataOf(r); address != "" {
		text += `, resource_metadata="` + address + `"`
	}
	if p.Code == "unauthorized" {
		return text
	}
	return text + `, error="invalid_token", error_description="` + p.Detail + `"`
}
