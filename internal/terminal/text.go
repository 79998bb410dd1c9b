package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Clean returns text as one line without characters that a terminal acts upon:
// runs of white space are one space, control characters are replaced by U+FFFD.
func Clean(text string) string {
	if !strings.ContainsFunc(text, isControl) && !strings.Contains(text, "  ") {
		return text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case isControl(r):
			return utf8.RuneError
		}
		return r
	}, text)
	return textfmt.OneLine(text)
}

// Printable replaces the characters that a terminal acts upon by U+FFFD, except
// line ends and tabs. All line ends become "\n".
func Printable(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && isControl(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// isControl reports whether a terminal may act upon a character, or whether it can
// change how the text around it is shown.
func isControl(r rune) bool {
	return r < ' ' || r > '~' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff')
}

// Pad returns text with a width in terminal columns: cut with an ellipsis or padded
// with spaces after it.
func Pad(text string, width int) string {
	return runewidth.FillRight(truncate(text, width), width)
}

// PadLeft is Pad with the spaces before the text.
func PadLeft(text string, width int) string {
	return runewidth.FillLeft(truncate(text, width), width)
}

func truncate(text string, width int) string {
	if runewidth.StringWidth(text) > width {
		return runewidth.Truncate(text, width, "…")
	}
	return text
}
