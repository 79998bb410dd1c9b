// Package jsontext has what the readers and writers of JSON texts share.
package jsontext

import (
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

// Each byte of a constant is one of a word of eight.
const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// Plain returns how many bytes at the start of a text are printable ASCII other than quotes and
// backslashes: they are the same in a JSON text. It looks at eight bytes at a time.
func Plain(s string) int {
	at := 0
	for ; len(s)-at >= 8; at += 8 {
		w := s[at : at+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, backslash, del := x^(ones*'"'), x^(ones*'\\'), x^(ones*0x7f)
		// A subtraction borrows only from the byte above a match, so the lowest match is
		// right.
		found := x | (x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash | (del-ones)&^del
		if found &= high; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for ; at < len(s); at++ {
		if c := s[at]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			break
		}
	}
	return at
}

// AppendField appends a field of an object after another one: a comma, the name, which needs no escapes, and
// a value. A value that has no JSON is null.
func AppendField(b []byte, name string, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("null")
	}
	b = append(b, ',', '"')
	b = append(append(b, name...), `":`...)
	return append(b, raw...)
}

// Escapes selects the characters that AppendString escapes although JSON does not require it.
type Escapes bool

// What AppendString escapes.
const (
	Required Escapes = false // quotes, backslashes and control characters
	LineSafe Escapes = true  // also DEL, U+2028 and U+2029, which some line readers take for line ends
)

// AppendString appends a text as a JSON string. Invalid UTF-8 becomes U+FFFD. Unlike encoding/json it does not
// escape <, > and &.
func AppendString(b []byte, s string, escapes Escapes) []byte {
	b = append(b, '"')
	start := 0 // of the part that needs no escapes and is not written yet
	for i := 0; i < len(s); {
		if c := s[i]; c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i += 1 + Plain(s[i+1:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= 0x7f && (r != utf8.RuneError || size > 1) && (escapes == Required || r != 0x7f && r != 0x2028 && r != 0x2029) {
			i += size
			continue
		}
		b = appendEscaped(append(b, s[start:i]...), r)
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// appendEscaped appends a character that is not written as it is; utf8.RuneError is an
// invalid byte.
func appendEscaped(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, '\\', 'n')
	case r == '\r':
		return append(b, '\\', 'r')
	case r == '\t':
		return append(b, '\\', 't')
	case r < 0x20 || r == 0x7f:
		return append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	case r == 0x2028:
		return append(b, `\u2028`...)
	case r == 0x2029:
		return append(b, `\u2029`...)
	}
	return utf8.AppendRune(b, r)
}
