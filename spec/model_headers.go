package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reservedHeaders are headers that a client sets itself, and headers of one connection
// (RFC 9110, section 7.6.1), which proxies remove.
func reservedHeaders() []string {
	return []string{"Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}
}

// HeaderConflict returns the first header of the model that a request cannot have, and why; both
// are empty if there is none.
func (m *Model) HeaderConflict() (name, problem string) {
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) { // sorted, so that the first one is always the same
		switch {
		case !IsHeaderName(name):
			return name, fmt.Sprintf("invalid header %q", name)
		case slices.ContainsFunc(reservedHeaders(), func(reserved string) bool { return strings.EqualFold(reserved, name) }):
			return name, fmt.Sprintf("the header %s is set by qtype; credentials are an auth", name)
		case !IsHeaderValue(m.Headers[name].Reveal()):
			return name, fmt.Sprintf("the header %s has a value that HTTP cannot carry", name)
		}
	}
	return "", ""
}
