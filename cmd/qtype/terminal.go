package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/qtype-dev/qtype/spec/diag"
)

// streams is what a command reads from and writes to.
type streams struct {
	in          io.Reader
	out         io.Writer // results
	err         io.Writer // everything else
	inTerminal  bool      // in is a terminal
	outTerminal bool      // out is a terminal
	errTerminal bool      // err is a terminal
	color       bool      // terminals may be given colour
	width       int       // columns of the terminal
	args        []string  // the command line, without the program's name
	floor       []byte    // memory that is held so that garbage is collected less often; nil where that is not wanted
}

// defaultWidth is the columns of a terminal that does not say.
const defaultWidth = 100

// standardStreams are the process's own. NO_COLOR and TERM=dumb are honoured.
func standardStreams() *streams {
	s := &streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, width: defaultWidth,
		inTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())), errTerminal: term.IsTerminal(int(os.Stderr.Fd()))}
	s.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.width = w
			break
		}
	}
	return s
}

// print writes with f. A failure to write is not told: where it would be told
// is what cannot be written to.
func (s *streams) print(w io.Writer, f func(io.Writer) error) { _ = f(w) }

// diagText is how diagnostics are shown on a stream.
func (s *streams) diagText(terminal bool) diag.TextOptions {
	if !terminal {
		return diag.TextOptions{}
	}
	return diag.TextOptions{Color: s.color, Width: s.width}
}

// clean is text on one line, without anything that a terminal would act upon.
func clean(text string) string {
	if !strings.ContainsFunc(text, unsafe) && !strings.Contains(text, "  ") {
		return text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unsafe(r):
			return '\uFFFD'
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

func unsafe(r rune) bool {
	return r < ' ' || r > '~' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff')
}

// pad brings text to a width in columns, cut with an ellipsis or filled with spaces.
func pad(text string, width int) string {
	if runewidth.StringWidth(text) > width {
		text = runewidth.Truncate(text, width, "…")
	}
	return runewidth.FillRight(text, width)
}

// padLeft is pad with the spaces before the text.
func padLeft(text string, width int) string {
	if runewidth.StringWidth(text) > width {
		text = runewidth.Truncate(text, width, "…")
	}
	return runewidth.FillLeft(text, width)
}
