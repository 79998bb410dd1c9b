package chatui

import (
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// pieces makes the pieces of a text printable, so that together they are the printable whole:
// the bytes of an incomplete character, and a CR that an LF may follow, wait for the next one.
type pieces struct{ waiting string }

// add returns what can be printed with the next piece.
func (p *pieces) add(text string) string {
	text = p.waiting + text
	n := completeLength(text)
	p.waiting = text[n:]
	return terminal.Printable(text[:n])
}

// end returns the rest.
func (p *pieces) end() string {
	text := terminal.Printable(p.waiting)
	p.waiting = ""
	return text
}

// completeLength returns the length of a text without an incomplete character or a CR at its
// end.
func completeLength(text string) int {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return n - 1
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if utf8.RuneStart(text[len(text)-cut]) {
			if !utf8.FullRuneInString(text[len(text)-cut:]) {
				return len(text) - cut
			}
			break
		}
	}
	return len(text)
}
