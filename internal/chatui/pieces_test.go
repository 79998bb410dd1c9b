package chatui

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// TestPieces: however a text is divided, the same is printed, and no character that a terminal
// acts upon.
func TestPieces(t *testing.T) {
	for text, want := range map[string]string{
		"one\r\ntwo\rthree\r\r\nfour\r": "one\ntwo\nthree\n\nfour\n",
		"漢\xe6\xbc\xe6👍e\u0301":         "漢\ufffd\ufffd\ufffd👍e\u0301",
		"a\x1b[2J\x00\u202eb\u2066\b":   "a\ufffd[2J\ufffd\ufffdb\ufffd\ufffd",
	} {
		if got := terminal.Printable(text); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
		for size := 1; size <= len(text); size++ {
			var p pieces
			got := ""
			for at := 0; at < len(text); at += size {
				got += p.add(text[at:min(at+size, len(text))])
			}
			if got += p.end(); got != want {
				t.Errorf("%q in pieces of %d bytes is printed as %q", text, size, got)
			}
		}
	}
}
