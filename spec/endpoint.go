package spec

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Methods lists the HTTP methods of tools, in the order in which messages name them.
func Methods() []string { return []string{"GET", "HEAD", "OPTIONS", "DELETE", "PUT", "POST", "PATCH"} }

// EndpointPart is literal text of an endpoint, or a placeholder.
type EndpointPart struct {
	Text    string // the literal text
	Name    string // the name of the argument, for a placeholder
	InQuery bool   // whether it is in the query
}

// ParseEndpoint splits the endpoint of a tool into text and placeholders, and checks that
// it is a URL.
func ParseEndpoint(text string) ([]EndpointPart, error) {
	var parts []EndpointPart
	trial := "" // the URL with x for every placeholder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			parts = append(parts, EndpointPart{Text: before})
			trial += before
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{/?#") {
			return nil, errors.New(`endpoint: unmatched "{"`)
		}
		if trial != "" && !strings.Contains(trial, "://") {
			return nil, fmt.Errorf("endpoint %w", errScheme)
		}
		if !hasFullHost(trial) {
			return nil, fmt.Errorf("endpoint: {%s} is allowed in the path or the query, not in the host", name)
		}
		parts = append(parts, EndpointPart{Name: name, InQuery: strings.Contains(trial, "?")})
		trial += "x"
		rest = tail
	}
	u, err := parseAddress(trial)
	switch {
	case err != nil:
		return nil, fmt.Errorf("endpoint %w", err)
	case u.Hostname() == "":
		return nil, errors.New("endpoint has no host")
	}
	return parts, nil
}

var errScheme = errors.New("must begin with http:// or https://")

// parseAddress parses a URL of HTTP.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "https://"):
		if err != nil {
			return nil, errors.New("is not a URL")
		}
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return nil, errScheme
	}
	return u, nil
}

// hasFullHost reports whether the scheme and the host of a URL are complete.
func hasFullHost(text string) bool {
	_, rest, found := strings.Cut(text, "://")
	return found && strings.ContainsAny(rest, "/?")
}

// requestConflicts returns what is wrong with the keys of the request line and the headers.
func (t *APITool) requestConflicts() []Conflict {
	var all []Conflict
	if t.hasUnknownMethod() {
		all = append(all, Conflict{Key: "method", Problem: fmt.Sprintf("method %q is not one of %s", t.Method, strings.Join(Methods(), ", "))})
	}
	if _, err := ParseEndpoint(t.Endpoint); err != nil {
		all = append(all, Conflict{Key: "endpoint", Problem: err.Error()})
	} else if name, unknown := t.UnknownPlaceholder(); unknown {
		all = append(all, Conflict{Key: "endpoint", Problem: fmt.Sprintf("endpoint names {%s}, which is neither an input nor a parameter", name)})
	}
	return append(all, headerConflicts(t.Headers)...)
}

// hasUnknownMethod reports whether the method is not one of HTTP.
func (t *APITool) hasUnknownMethod() bool {
	return t.Method != "" && !slices.Contains(Methods(), strings.ToUpper(t.Method))
}

// UnknownPlaceholder returns the first placeholder of the endpoint that is not an argument.
func (t *APITool) UnknownPlaceholder() (name string, unknown bool) {
	parts, err := ParseEndpoint(t.Endpoint)
	if err != nil {
		return "", false
	}
	arguments := t.Arguments()
	for _, p := range parts {
		if p.Name != "" && !slices.ContainsFunc(arguments, func(v *Variable) bool { return v != nil && v.ID == p.Name }) {
			return p.Name, true
		}
	}
	return "", false
}

// The checks of this file equal golang.org/x/net/http/httpguts, which also has tables for
// the names of hosts: the checker in the browser would be larger by them.

// IsHeaderName reports whether a text can be the name of a header of HTTP.
func IsHeaderName(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}

// IsHeaderValue reports whether a text can be the value of a header of HTTP: it has no
// control characters but tabs.
func IsHeaderValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// transportHeaders are headers of one connection (RFC 9110, section 7.6.1), which proxies remove, and
// headers that the client of HTTP sets: the host, the length and the codings that it can read.
func transportHeaders() []string {
	return []string{"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

// IsTransportHeader reports whether a document cannot set a header: HTTP clients ignore it, or send
// a request that servers refuse, or get an answer that they cannot read.
func IsTransportHeader(name string) bool {
	return slices.ContainsFunc(transportHeaders(), func(other string) bool { return strings.EqualFold(other, name) })
}

// headerConflicts returns the headers that a request cannot have, by their names. Those that the client of
// a model sets are reserved.
func headerConflicts(headers map[string]Secret, reserved ...string) []Conflict {
	var all []Conflict
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		problem, key := headerProblem(name, headers[name].Reveal(), reserved), strings.ToLower(name)
		if problem == "" && seen[key] != "" {
			problem = fmt.Sprintf("%s and %s are the same header", seen[key], name)
		}
		seen[key] = name
		if problem != "" {
			all = append(all, Conflict{"headers", name, problem})
		}
	}
	return all
}

// checkHeaders is headerConflicts for the arguments of an index.
func checkHeaders(headers map[string]string) (problems []*ArgumentError) {
	secrets := map[string]Secret{}
	for name, value := range headers {
		secrets[name] = NewSecret(value)
	}
	for _, c := range headerConflicts(secrets) {
		problems = append(problems, &ArgumentError{Key: "headers", Message: c.Problem})
	}
	return problems
}

// headerProblem returns why a request cannot have a header, empty if it can.
func headerProblem(name, value string, reserved []string) string {
	switch {
	case !IsHeaderName(name):
		return fmt.Sprintf("invalid header %q", name)
	case IsTransportHeader(name):
		return fmt.Sprintf("the header %s is set by qtype", name)
	case slices.ContainsFunc(reserved, func(other string) bool { return strings.EqualFold(other, name) }):
		return fmt.Sprintf("the header %s is set by qtype; credentials are an auth", name)
	case !IsHeaderValue(value):
		return fmt.Sprintf("the header %s has a value that HTTP cannot carry", name)
	}
	return ""
}

// HeaderConflict returns the first header of the model that a request cannot have, and why; both
// are empty if there is none.
func (m *Model) HeaderConflict() (name, problem string) {
	for _, c := range headerConflicts(m.Headers, "Authorization", "Content-Type", "X-Api-Key", "X-Goog-Api-Key", "Api-Key") {
		return c.Entry, c.Problem
	}
	return "", ""
}
