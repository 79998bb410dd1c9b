package jsontext

import "unicode/utf8"

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
