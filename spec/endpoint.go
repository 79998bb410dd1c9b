package spec

import (
	"errors"
	"fmt"
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
