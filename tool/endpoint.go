package tool

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// endpoint is a URL with placeholders: {name} is replaced by an argument.
type endpoint struct {
	parts []part
}

// part is literal text of the URL, or a placeholder.
type part struct {
	text    string // the literal text
	name    string // name of the argument, for a placeholder
	inQuery bool   // whether it is in the query
}

// parseEndpoint parses an endpoint and checks that it is a URL.
func parseEndpoint(text string) (*endpoint, error) {
	e := &endpoint{}
	trial := "" // the URL with x for every placeholder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			e.parts = append(e.parts, part{text: before})
			trial += before
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{/?#") {
			return nil, errors.New(`endpoint: unmatched "{"`)
		}
		if !hasFullHost(trial) {
			return nil, fmt.Errorf("endpoint: {%s} is allowed in the path or the query, not in the host", name)
		}
		e.parts = append(e.parts, part{name: name, inQuery: strings.Contains(trial, "?")})
		trial += "x"
		rest = tail
	}
	u, err := url.Parse(trial)
	switch {
	case err != nil:
		return nil, errors.New("endpoint is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("endpoint must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("endpoint has no host")
	}
	return e, nil
}

// hasFullHost reports whether the scheme and the host of a URL are complete.
func hasFullHost(text string) bool {
	_, rest, found := strings.Cut(text, "://")
	return found && strings.ContainsAny(rest, "/?")
}

// names lists the placeholders.
func (e *endpoint) names() []string {
	var names []string
	for _, p := range e.parts {
		if p.name != "" && !slices.Contains(names, p.name) {
			names = append(names, p.name)
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
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		v, err := value(p.name)
		if err != nil {
			return nil, err
		}
		if p.inQuery {
			b.WriteString(url.QueryEscape(v))
			continue
		}
		if v == "" {
			return nil, &pathArgumentError{p.name, "must not be empty: it is part of the path"}
		}
		if hasDotDot(v) {
			return nil, &pathArgumentError{p.name, "must not hold . or .. as a part of the path"}
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
func (e *endpoint) staticPart() string {
	var b strings.Builder
	for _, p := range e.parts {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		b.WriteString("x")
	}
	return b.String()
}

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
