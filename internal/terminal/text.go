package terminal

import (
	"bytes"
	"fmt"
	"io"
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

// escaper is a writer to a terminal that writes what a terminal acts upon as the escape
// sequences of JSON, such as \u009b. A text of JSON keeps its value.
type escaper struct {
	out   io.Writer
	ascii bool   // control characters of ASCII are escaped, too, except tabs and line ends
	rest  []byte // the beginning of a character
}

// Escape returns a writer that escapes the control characters beyond ASCII, the marks of
// direction, and bytes that are not UTF-8. Sequences of ASCII pass: the program writes its
// colors by them, and JSON escapes those of its texts.
func Escape(out io.Writer) io.Writer { return &escaper{out: out} }

// EscapeAll returns a writer that also escapes the control characters of ASCII, for
// formats that do not escape them, such as CSV. Tabs and line ends pass.
func EscapeAll(out io.Writer) io.Writer { return &escaper{out: out, ascii: true} }

// Write writes p. A character whose end is missing is written with the next call.
func (e *escaper) Write(p []byte) (int, error) {
	if len(e.rest) == 0 && !bytes.ContainsFunc(p, e.isEscaped) {
		return e.out.Write(p)
	}
	text := e.rest
	text = append(text, p...)
	escaped := make([]byte, 0, len(text)+16)
	for len(text) > 0 && (text[0] < utf8.RuneSelf || utf8.FullRune(text)) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			escaped = fmt.Appendf(escaped, `\ufffd`)
		case r == '\r' && len(text) > 1 && text[1] == '\n':
			escaped = append(escaped, '\r')
		case e.isEscaped(r) && r != utf8.RuneError:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	e.rest = bytes.Clone(text)
	if _, err := e.out.Write(escaped); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isEscaped reports whether a character has to be escaped. The replacement character may
// be a byte that is not UTF-8, or the beginning of a character.
func (e *escaper) isEscaped(r rune) bool {
	if r < ' ' {
		return e.ascii && r != '\n' && r != '\t'
	}
	return r == utf8.RuneError || isControl(r)
}

// UsageError reports a wrong command line: a flag or an argument that cannot be what it is.
type UsageError struct {
	Command string // whose help to point to; may be empty
	Reason  string // one line
}

// Error returns the reason.
func (e *UsageError) Error() string { return e.Reason }

// Usagef returns a UsageError that points to no help.
func Usagef(format string, args ...any) error {
	return &UsageError{Reason: fmt.Sprintf(format, args...)}
}
