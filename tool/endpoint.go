package tool

import (
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// endpoint is a URL with placeholders: {name} is replaced by an argument.
type endpoint struct {
	parts []spec.EndpointPart
}

// parseEndpoint parses an endpoint and checks that it is a URL.
func parseEndpoint(text string) (*endpoint, error) {
	parts, err := spec.ParseEndpoint(text)
	return &endpoint{parts: parts}, err
}

// names lists the placeholders.
func (e *endpoint) names() []string {
	var names []string
	for _, p := range e.parts {
		if p.Name != "" && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// pathArgumentError is what is wrong with an argument of the URL.
type pathArgumentError struct{ name, problem string }

func (e *pathArgumentError) Error() string { return e.name + ": " + e.problem }

// fill returns the URL of a call. Arguments are percent-encoded, so that they cannot
// change the structure of the URL. One that a server may treat as a relative path
// segment is rejected.
func (e *endpoint) fill(value func(name string) (string, error)) (*url.URL, error) {
	var b strings.Builder
	for _, p := range e.parts {
		if p.Name == "" {
			b.WriteString(p.Text)
			continue
		}
		v, err := value(p.Name)
		if err != nil {
			return nil, err
		}
		if p.InQuery {
			b.WriteString(url.QueryEscape(v))
			continue
		}
		if v == "" {
			return nil, &pathArgumentError{p.Name, "must not be empty: it is part of the path"}
		}
		if hasDotDot(v) {
			return nil, &pathArgumentError{p.Name, "must not hold . or .. as a part of the path"}
		}
		b.WriteString(url.PathEscape(v))
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, err
	}
	if path := u.EscapedPath(); hasDotDot(path) && !hasDotDot(e.staticPart()) { // composed of several parts: .{x} with x = .
		return nil, &pathArgumentError{strings.Join(e.names(), ", "), "must not make . or .. a part of the path"}
	}
	return u, nil
}

// staticPart returns the endpoint with x for every placeholder.
func (e *endpoint) staticPart() string { return spec.StaticEndpoint(e.parts) }

// hasDotDot reports whether a segment of the path is . or .., with any separator that a
// server may accept.
func hasDotDot(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}
