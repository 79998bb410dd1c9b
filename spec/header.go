package spec

import "strings"

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
