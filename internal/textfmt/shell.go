package textfmt

import (
	"fmt"
	"strings"
	"unicode"
)

// ShellQuote quotes a word for a shell where it is needed, so that a printed command can be
// pasted. Control characters are escaped as in $'\x1b'.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	switch {
	case word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0:
		return word
	case strings.ContainsFunc(word, unicode.IsControl):
		return escapeForShell(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// escapeForShell writes a word with control characters as $'…'.
func escapeForShell(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range word {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsControl(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}
