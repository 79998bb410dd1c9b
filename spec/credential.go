package spec

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// The functions of this file decide whether the credentials of an auth can be used. The
// validator calls them with texts of the document, and a run with the texts of secrets.

// notInHeader is a problem of a text that must not be part of a message.
const notInHeader = "contains a character that is not allowed in a header"

// SentSecret returns the secret of an auth that tools send, and its key; false if the type
// of auth has none.
func SentSecret(auth Auth) (key string, s Secret, ok bool) {
	switch a := auth.(type) {
	case *APIKeyAuth:
		return "api_key", a.APIKey, true
	case *BearerTokenAuth:
		return "token", a.Token, true
	case *BasicAuth:
		return "password", a.Password, true
	case *OAuth2Auth:
		return "client_secret", a.ClientSecret, true
	}
	return "", Secret{}, false
}

// ToolKeyProblem returns why tools cannot send a key, a token or a password; empty if they can.
func ToolKeyProblem(text string) string {
	switch {
	case text == "":
		return "is empty"
	case !IsHeaderValue(text) || strings.ContainsRune(text, '\t'):
		return notInHeader + " (trailing newline?)"
	}
	return ""
}

// KeyProblem returns why a key, a token or a password cannot be sent to the server of a
// model or an index, which ignore white space around it; empty if it can.
func KeyProblem(text string) string {
	if strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl) {
		return notInHeader
	}
	return ""
}

// KeyConflict returns the key of an auth that calls of the model cannot use, and what is
// wrong with it; both are empty if they can. text is the secret of the auth.
func (m *Model) KeyConflict(auth KeyAuth, text string) (key, problem string) {
	_, host := auth.ModelKey()
	key, _, _ = SentSecret(auth)
	if problem := KeyProblem(text); problem != "" {
		return key, problem
	}
	switch {
	case m.BaseURL != "":
		return "", ""
	case host != "" && !IsHTTPAddress(host):
		return "host", "has a host that is not an http or https address"
	case host == "" && strings.TrimSpace(text) == "": // another server than the provider's own may need none
		return key, "holds an empty key"
	}
	return "", ""
}

// HostConflict returns why tools cannot send the key to an endpoint: the host is no URL, or
// the endpoint is at another one; empty if they can.
func (a *APIKeyAuth) HostConflict(endpoint string) string {
	if a.Host == "" {
		return ""
	}
	host, err := url.Parse(a.Host)
	if err != nil || host.Host == "" {
		return "has a host that is not a URL"
	}
	parts, _ := ParseEndpoint(endpoint)
	u, err := url.Parse(StaticEndpoint(parts))
	if err != nil || u.Host != host.Host || u.Scheme != host.Scheme {
		return fmt.Sprintf("belongs to %s://%s, but the endpoint is at %s", host.Scheme, host.Host, origin(u))
	}
	return ""
}

// origin returns the scheme and the host of a URL, which may be nil.
func origin(u *url.URL) string {
	if u == nil {
		return "another address"
	}
	return u.Scheme + "://" + u.Host
}
