package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
