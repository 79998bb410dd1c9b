//go:build linux

package command

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/qtype-dev/qtype/internal/testkit"
)

var updateScreens = flag.Bool("update", false, "write the pictures of the screen in testdata/screens")

// display is a terminal with what a user sees of it: the cells of an emulator.
type display struct {
	*console
	cells *vt.Emulator
	raw   strings.Builder // everything that was written
}

// newDisplay starts qtype with arguments on a terminal, in a folder.
func newDisplay(t *testing.T, folder string, columns, rows int, args ...string) (*display, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	link := filepath.Join(t.TempDir(), "qtype") // the test program is qtype under that name
	testkit.Must(t, os.Symlink(self, link))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, link, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=key-of-the-test", "NO_PROXY=*", "TERM=xterm-256color", "NO_COLOR="+os.Getenv("NO_COLOR"), "SSH_TTY=", "TERM_PROGRAM=", "COLORTERM=")
	d := &display{cells: vt.NewEmulator(columns, rows)}
	d.console = newSizedConsole(t, cmd, unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	go func() { _, _ = io.Copy(d.master, d.cells) }() // the answers of the terminal
	t.Cleanup(func() {                                // Emulator.Close is not safe while Read is called
		if in, ok := d.cells.InputPipe().(io.Closer); ok {
			_ = in.Close()
		}
	})
	return d, cmd
}

// until reads what is written until the screen satisfies a condition.
func (d *display) until(what string, ok func(screen string) bool) {
	d.t.Helper()
	late := time.After(20 * time.Second)
	for !ok(d.screen()) {
		select {
		case more, open := <-d.read:
			if !open {
				d.t.Fatalf("the terminal was closed before there was %s:\n%s", what, d.screen())
			}
			d.raw.WriteString(more)
			_, _ = d.cells.WriteString(more)
		case <-late:
			d.t.Fatalf("there was no %s:\n%s", what, d.screen())
		}
	}
}

// see waits until texts are on the screen, one after the other.
func (d *display) see(texts ...string) {
	d.t.Helper()
	d.until(strings.Join(texts, " … "), func(screen string) bool {
		for _, text := range texts {
			_, after, found := strings.Cut(screen, text)
			if !found {
				return false
			}
			screen = after
		}
		return true
	})
}

// ready waits until the line of the user is the last one but the status, with a text.
func (d *display) ready(text string) {
	d.t.Helper()
	line := regexp.MustCompile(`(?m)^(you|edit)> ?` + regexp.QuoteMeta(text) + `\s*\n(model .*\s*)?\z`)
	d.until("line with "+text, func(screen string) bool { return line.MatchString(screen) })
}

// screen returns the text on the screen.
func (d *display) screen() string {
	var lines []string
	for y := range d.cells.Height() {
		line := ""
		for x := range d.cells.Width() {
			if c := d.cells.CellAt(x, y); c != nil && c.Width > 0 {
				line += c.Content
			} else if c == nil {
				line += " "
			}
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// changing is what differs between two runs.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9.]+ (ms|s|µs)\b`), "N s"},
	{regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`), "*"},
	{regexp.MustCompile(`· N s · Ctrl-C`), "· Ctrl-C"},
}

// golden compares the cells and their styles with a file of testdata/screens. The screen is
// complete, because the test has waited for its last text.
func (d *display) golden(name string) {
	d.t.Helper()
	d.goldenFrom(name, "")
}

// goldenFrom compares the screen from a text on.
func (d *display) goldenFrom(name, text string) {
	d.t.Helper()
	picture := func() string {
		p := d.picture()
		return p[max(0, strings.Index(p, text)):]
	}
	path := filepath.Join("testdata", "screens", name+".txt")
	if *updateScreens {
		testkit.Must(d.t, os.WriteFile(path, []byte(picture()), 0o644))
	}
	want := testkit.ReadFile(d.t, path)
	late := time.After(20 * time.Second)
	for picture() != want {
		select {
		case more := <-d.read:
			d.raw.WriteString(more)
			_, _ = d.cells.WriteString(more)
		case <-late:
			d.t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(want, picture()))
			return
		}
	}
}

// picture returns the cells with their styles, which are written as <1>bold<>.
func (d *display) picture() string {
	text := regexp.MustCompile("\x1b\\[([0-9;]*)m").ReplaceAllString(d.cells.Render(), "<$1>")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.with)
	}
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	// How far the screen has scrolled depends on the parts of an answer that came together.
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// quit ends the conversation and waits for the program.
func (d *display) quit(cmd *exec.Cmd) {
	d.t.Helper()
	d.say("\x04")
	d.waitEnd(cmd)
}

// readAll reads until the terminal is closed.
func (d *display) readAll() {
	d.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case more, open := <-d.read:
			if !open {
				return
			}
			d.raw.WriteString(more)
			_, _ = d.cells.WriteString(more)
		case <-late:
			d.t.Fatalf("the program did not end:\n%s", d.screen())
		}
	}
}

// waitEnd waits for the end of the program, which succeeds.
func (d *display) waitEnd(cmd *exec.Cmd) {
	d.t.Helper()
	go func() {
		for range d.read { // the program must not wait for the terminal
		}
	}()
	if err := cmd.Wait(); err != nil {
		d.t.Errorf("it ended with %v", err)
	}
}
