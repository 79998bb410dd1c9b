package screen

import (
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// writer prints what is written, line by line.
type writer struct {
	screen *Screen
	to     io.Writer // while the screen is not started
}

// Writer returns a writer that prints lines above the line of the user, and writes to w while
// the screen is not started. A text without a line end is the question of the next Ask.
func (s *Screen) Writer(w io.Writer) io.Writer { return &writer{s, w} }

// Write prints the lines that are complete.
func (w *writer) Write(p []byte) (int, error) {
	s := w.screen
	s.mu.Lock()
	if s.program == nil {
		defer s.mu.Unlock()
		return w.to.Write(p)
	}
	lines := strings.Split(s.partial+string(p), "\n")
	s.partial = lines[len(lines)-1]
	s.mu.Unlock()
	s.Print(lines[:len(lines)-1]...)
	return len(p), nil
}

// styleSequence is the only sequence that may reach the terminal: it changes colors.
var styleSequence = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]{0,32}m") })

// tab is what a tab is shown as.
const tab = "    "

// sanitize returns a line without the characters that a terminal acts upon, except styles.
func sanitize(line string) string {
	var b strings.Builder
	for line != "" {
		at := styleSequence().FindStringIndex(line)
		if at == nil {
			at = []int{len(line), len(line)}
		}
		b.WriteString(strings.ReplaceAll(plain(line[:at[0]]), "\t", tab))
		b.WriteString(line[at[0]:at[1]])
		line = line[at[1]:]
	}
	return b.String()
}

// plain replaces control characters, line ends included.
func plain(text string) string {
	return strings.ReplaceAll(terminal.Printable(strings.ToValidUTF8(text, "\uFFFD")), "\n", " ")
}

// oneLine returns a text without styles and control characters.
func oneLine(text string) string { return strings.ReplaceAll(plain(text), "\t", " ") }
