package tool

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// endpoint is an URL in which {name} stands for an argument.
type endpoint struct {
	parts []part
}

// part is a stretch of the URL as it stands, or a placeholder.
type part struct {
	text    string // as it stands
	name    string // the argument's name, for a placeholder
	inQuery bool   // behind the question mark
}

// parseEndpoint reads an endpoint and checks that it can become an URL.
func parseEndpoint(text string) (*endpoint, error) {
	e := &endpoint{}
	trial := "" // the URL with something in every placeholder
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
			return nil, errors.New("endpoint holds a { that begins no {name}")
		}
		if !hasFullHost(trial) {
			return nil, fmt.Errorf("endpoint: {%s} may stand in the path or the query, not in the host", name)
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
		return nil, errors.New("endpoint names no host")
	}
	return e, nil
}

// hasFullHost tells whether scheme and host of an URL are complete.
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

// pathArgumentError says what is wrong with an argument of the path.
type pathArgumentError struct{ name, problem string }

func (e *pathArgumentError) Error() string { return e.name + ": " + e.problem }

// fill makes the URL. A value stays inside its place: everything that means
// something in an URL is percent-encoded, and a value that a server might read
// as a way up or down the tree is refused.
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
	if path := u.EscapedPath(); hasDotDot(path) && !hasDotDot(e.staticPart()) { // put together from pieces: .{x} with x = .
		return nil, &pathArgumentError{strings.Join(e.names(), ", "), "must not make . or .. a part of the path"}
	}
	return u, nil
}

// staticPart is the endpoint's own text.
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

// hasDotDot tells whether a part of the path is . or .., for any server's idea of
// what separates parts.
func hasDotDot(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}
