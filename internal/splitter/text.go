package splitter

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec/value"
)

// PythonText returns the text of a scalar as Python writes it, and of another value as
// JSON.
func PythonText(v any) string {
	switch v {
	case nil:
		return "None"
	case true:
		return "True"
	case false:
		return "False"
	}
	return value.Text(v)
}

// isTrimmed reports whether Python removes a character from the ends of a text: white
// space, and four control characters that are not white space for Unicode.
func isTrimmed(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

// trimSpace returns the range without white space at its ends.
func trimSpace(text string, start, end int) (int, int) {
	start += len(text[start:end]) - len(strings.TrimLeftFunc(text[start:end], isTrimmed))
	return start, start + len(strings.TrimRightFunc(text[start:end], isTrimmed))
}

// skipSpace returns the index of the first character at i or after it that is not space.
func skipSpace(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsSpace(r) {
			break
		}
		i += size
	}
	return i
}

// skipWord returns the index of the first space at i or after it.
func skipWord(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			break
		}
		i += size
	}
	return i
}

// spaceAt reports whether white space begins at text[i:].
func spaceAt(text string, i int) bool {
	if i >= len(text) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsSpace(r)
}
