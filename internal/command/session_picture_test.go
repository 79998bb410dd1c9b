//go:build linux

package command

import (
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/testkit"
)

var updatePictures = flag.Bool("update-pictures", false, "rewrite docs/images/session.svg")

// sessionCommands are the commands of the picture in the README.
var sessionCommands = []string{
	"qtype validate hello.qtype.yaml",
	"qtype validate --fix -q hello.qtype.yaml",
	`qtype run hello.qtype.yaml -i '"My name is Ada."' --session me`,
	"qtype memory show hello.qtype.yaml --session me",
	"qtype run app.qtype.yaml -I messages.csv --limit 5",
}

// TestDocs_SessionPicture runs the commands on a pseudo-terminal and compares the cells of its
// screen, as SVG, with the picture in the README. Durations are replaced.
func TestDocs_SessionPicture(t *testing.T) {
	testkit.SkipWithRace(t)
	folder := t.TempDir()
	for _, name := range []string{"app.qtype.yaml", "messages.csv"} {
		text := testkit.ReadFile(t, filepath.Join("../../examples/support_inbox", name))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	readme := testkit.ReadFile(t, "../../README.md")
	document := regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindStringSubmatch(readme)[1]
	document = strings.Replace(document, "memory: chat_memory", "memory: chat_memry", 1)
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "hello.qtype.yaml"), []byte(document), 0o600))
	var drawn cellScreen
	for _, command := range sessionCommands {
		drawn.write("\x1b[32m$\x1b[0m \x1b[1m" + command + "\x1b[0m\r\n")
		text := runOnTerminal(t, folder, fmt.Sprintf("stty rows 50 cols %d; %s", columns, command))
		drawn.write(slowSteps.ReplaceAllString(text, "")) // printed after a second
		drawn.write("\r\n")
	}
	picture := checked.ReplaceAllString(elapsed.ReplaceAllString(drawn.svg(), "in 90 ms"), "(5 ms)")
	const file = "../../docs/images/session.svg"
	if *updatePictures {
		testkit.Must(t, os.WriteFile(file, []byte(picture), 0o644))
	}
	if testkit.ReadFile(t, file) != picture {
		t.Errorf("the picture is not up to date: go test ./cmd/qtype -run %s -update-pictures", t.Name())
	}
}

// What differs between two runs: the times of runs, of checks and of steps.
var (
	slowSteps = regexp.MustCompile(`(?m)^(?:\x1b\[[0-9;]*m)*time [^\n]*ms per row[^\n]*\n`)
	elapsed   = regexp.MustCompile(`\bin \d+(\.\d+)? m?s\b`)
	checked   = regexp.MustCompile(`\(\d+ ms\)`)
)

// runOnTerminal returns what a command writes to a terminal.
func runOnTerminal(t *testing.T, folder, command string) string {
	t.Helper()
	cmd := testkit.Command(t, "sh", "-c", command)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=", "TERM=xterm", "NO_COLOR=", "HOME="+folder)
	c := newConsole(t, cmd)
	var text strings.Builder
	for part := range c.read {
		text.WriteString(part)
	}
	_ = cmd.Wait() // the first command reports an error
	return text.String()
}

// cell is a character of a screen with its style.
type cell struct {
	text  rune
	style string // the class of its text; empty for the default
}

// cellScreen is the part of a terminal that commands with colors and progress need.
type cellScreen struct {
	lines    [][]cell
	row, col int
	style    string
}

// control is a control sequence of a terminal.
var control = regexp.MustCompile(`^\x1b(?:\[([?0-9;]*)([A-Za-z])|\][^\x07]*\x07)`)

// write interprets what a program writes.
func (s *cellScreen) write(text string) {
	for len(text) > 0 {
		if m := control.FindStringSubmatch(text); m != nil {
			s.control(m[1], m[2])
			text = text[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.row++
		default:
			s.put(r)
		}
	}
}

// control interprets a control sequence.
func (s *cellScreen) control(arguments, command string) {
	n, _ := strconv.Atoi(arguments)
	switch command {
	case "A":
		s.row = max(0, s.row-max(1, n))
	case "B":
		s.row += max(1, n)
	case "C":
		s.col += max(1, n)
	case "D":
		s.col = max(0, s.col-max(1, n))
	case "G":
		s.col = max(1, n) - 1
	case "K", "J":
		s.erase(command == "J")
	case "m":
		s.paint(arguments)
	}
}

// erase deletes from the cursor to the end of its line, and the lines below.
func (s *cellScreen) erase(below bool) {
	if s.row < len(s.lines) {
		s.lines[s.row] = s.lines[s.row][:min(s.col, len(s.lines[s.row]))]
		if below {
			s.lines = s.lines[:s.row+1]
		}
	}
}

// styles are the classes of attributes.
var styles = map[string]string{
	"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u", "35": "m", "36": "c", "90": "d",
	"91": "r", "92": "g", "93": "y", "94": "u", "95": "m", "96": "c",
}

// paint sets the style of the next characters.
func (s *cellScreen) paint(arguments string) {
	for a := range strings.SplitSeq(arguments, ";") {
		switch class := styles[strings.TrimPrefix(a, "0")]; {
		case class == "":
			s.style = ""
		case s.style == "":
			s.style = class
		default:
			s.style += " " + class
		}
	}
}

// put writes a character at the cursor.
func (s *cellScreen) put(r rune) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	for len(s.lines[s.row]) <= s.col {
		s.lines[s.row] = append(s.lines[s.row], cell{text: ' '})
	}
	s.lines[s.row][s.col] = cell{r, s.style}
	s.col++
}

const (
	columns    = 116 // of the terminal
	cellWidth  = 8.1
	lineHeight = 18
	margin     = 16
)

// svg returns the screen as a picture.
func (s *cellScreen) svg() string {
	lines := s.lines
	for len(lines) > 0 && strings.TrimSpace(plain(lines[len(lines)-1])) == "" {
		lines = lines[:len(lines)-1]
	}
	width, height := int(math.Ceil(columns*cellWidth))+2*margin, len(lines)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A terminal session">
<title>A terminal session: an error of a document, its fix, a run, the memory, and a batch</title>
<style>
rect{fill:#1b1f27}text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dbe0;white-space:pre}
.b{font-weight:700}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#e3b341}.u{fill:#79c0ff}.m{fill:#d2a8ff}.c{fill:#76e3ea}
</style>
<rect width="%d" height="%d" rx="8"/>
`, width, height, width, height, width, height)
	for i, line := range lines {
		if text := strings.TrimSpace(plain(line)); text == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, margin+(i+1)*lineHeight-5, spans(line))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// plain returns the characters of a line.
func plain(line []cell) string {
	var b strings.Builder
	for _, c := range line {
		b.WriteRune(c.text)
	}
	return b.String()
}

// spans returns a line with its styles.
func spans(line []cell) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		j := i
		for j < len(line) && line[j].style == line[i].style {
			j++
		}
		text := html.EscapeString(plain(line[i:j]))
		if j == len(line) {
			text = strings.TrimRight(text, " ")
		}
		if style := line[i].style; style != "" {
			text = fmt.Sprintf(`<tspan class="%s">%s</tspan>`, style, text)
		}
		b.WriteString(text)
		i = j
	}
	return b.String()
}
