// Package screen is the terminal of a conversation: the messages scroll above a line that
// the user edits, with the answer that is being written and a status line.
//
// What is printed comes from models, tools and users. Only the sequences of styles reach
// the terminal; see sanitize.
package screen

import (
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/qtype-dev/qtype/internal/terminal"
)

// Options configure a screen.
type Options struct {
	In       io.Reader // the terminal
	Out      io.Writer // the terminal
	Color    bool      // styles may be written
	Width    int       // columns, until the terminal reports them
	History  *History  // what was typed before
	Complete Completer // completes what is typed; nil for nothing
}

// Completer returns the texts that can replace what was typed from a byte position on. It is
// called outside of the goroutine of the screen.
type Completer func(ctx context.Context, typed string) (from int, candidates []string)

// Screen is the terminal between Start and Close. Its methods are safe for concurrent use.
type Screen struct {
	options Options
	width   atomic.Int64

	mu      sync.Mutex // guards the fields below
	program *tea.Program
	ended   chan struct{} // closed when the program has ended
	partial string        // written without a line end: the question of the next Ask
}

// New returns a screen that is not started yet: its writers write through.
func New(o Options) *Screen {
	s := &Screen{options: o}
	s.width.Store(int64(o.Width))
	return s
}

// Start takes over the terminal.
func (s *Screen) Start(ctx context.Context) {
	m := newModel(&s.options, &s.width)
	m.ctx = ctx
	opts := []tea.ProgramOption{tea.WithInput(s.options.In), tea.WithOutput(s.options.Out), tea.WithoutSignalHandler(), tea.WithoutCatchPanics()}
	if !s.options.Color {
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	}
	program, ended := tea.NewProgram(m, opts...), make(chan struct{})
	s.mu.Lock()
	s.program, s.ended = program, ended
	s.mu.Unlock()
	go func() {
		defer close(ended)
		_, _ = program.Run() // an error of the terminal ends the input
	}()
}

// Close gives the terminal back. What was printed stays.
func (s *Screen) Close() {
	s.mu.Lock()
	program, ended := s.program, s.ended
	s.mu.Unlock()
	if program == nil {
		return
	}
	s.apply(func(m *model) tea.Cmd {
		m.closed = true
		return tea.Quit
	})
	<-ended
	s.mu.Lock()
	s.program = nil
	s.mu.Unlock()
}

// Width returns the columns that a line may take. The last one of the terminal is left free:
// what is written there is lost when the rest of the line is erased.
func (s *Screen) Width() int { return max(int(s.width.Load())-1, 1) }

// apply changes the model; it does nothing while the screen is not started.
func (s *Screen) apply(change func(*model) tea.Cmd) {
	s.mu.Lock()
	program := s.program
	s.mu.Unlock()
	if program != nil {
		program.Send(update(change))
	}
}

// set is apply for a change that starts nothing.
func (s *Screen) set(change func(*model)) {
	s.apply(func(m *model) tea.Cmd {
		change(m)
		return nil
	})
}

// Print writes lines above the line of the user.
func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	program := s.program
	s.mu.Unlock()
	if program == nil {
		return
	}
	for _, line := range lines {
		for _, rows := range s.rows(line) {
			program.Send(tea.Println(rows)())
		}
	}
}

// maxRows bounds the rows that are printed at once: they must fit above the line of the user.
const maxRows = 4

// rows returns a line as the rows that it takes, some at a time.
func (s *Screen) rows(line string) []string {
	line = sanitize(line)
	if line == "" {
		return []string{" "} // an empty text is not printed
	}
	all := strings.Split(ansi.Wrap(line, s.Width(), ""), "\n")
	var groups []string
	for len(all) > 0 {
		n := min(len(all), maxRows)
		text := strings.Join(all[:n], "\n")
		if strings.Contains(text, "\x1b") {
			text += ansi.ResetStyle
		}
		groups, all = append(groups, text), all[n:]
	}
	return groups
}

// Pending shows lines of an answer that is not complete.
func (s *Screen) Pending(lines []string) {
	for i := range lines {
		lines[i] = sanitize(lines[i])
	}
	s.set(func(m *model) { m.pending = lines })
}

// Activity shows what is waited for, with the time since then; an empty text shows nothing.
// interrupt is called when the user presses Ctrl-C meanwhile.
func (s *Screen) Activity(text string, since time.Time, interrupt func()) {
	s.apply(func(m *model) tea.Cmd {
		idle := m.activity == ""
		m.activity, m.since, m.interrupt = oneLine(text), since, interrupt
		if text == "" || !idle {
			return nil
		}
		return m.tick()
	})
}

// Status shows the parts of the status line. The last ones are left out where the terminal is
// too narrow.
func (s *Screen) Status(parts []string) {
	for i := range parts {
		parts[i] = oneLine(parts[i])
	}
	s.set(func(m *model) { m.status = parts })
}

// Interrupt acts as Ctrl-C does.
func (s *Screen) Interrupt() { s.set((*model).onInterrupt) }

// Copy puts a text on the clipboard, if the terminal allows it.
func (s *Screen) Copy(text string) {
	s.apply(func(*model) tea.Cmd { return tea.SetClipboard(text) })
}

// Read returns the next message of the user: io.EOF after the last one. The message is added
// to the history and stays on the screen.
func (s *Screen) Read(ctx context.Context, prompt, initial string) (string, error) {
	reader := make(chan reply, 1)
	text, err := s.wait(ctx, reader, func(m *model) { m.read(reader, prompt, initial) },
		func(m *model) { m.reader = nil })
	if err == nil {
		s.Print(echo(prompt, text)...)
	}
	return text, err
}

// Ask returns the answer to the question that was written last, which has no line end. It is
// not added to the history.
func (s *Screen) Ask(ctx context.Context) (string, error) {
	s.mu.Lock()
	question := oneLine(s.partial)
	s.partial = ""
	s.mu.Unlock()
	asker := make(chan reply, 1)
	text, err := s.wait(ctx, asker, func(m *model) { m.ask(asker, question) }, func(m *model) { m.ask(nil, "") })
	s.Print(question + text)
	return text, err
}

// wait begins to wait for a reply, and returns it.
func (s *Screen) wait(ctx context.Context, replies <-chan reply, begin, end func(*model)) (string, error) {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	s.set(begin)
	select {
	case r := <-replies:
		return r.text, r.err
	case <-ctx.Done():
		s.set(end)
		return "", context.Cause(ctx)
	case <-ended:
		return "", io.EOF
	}
}

// echo returns the lines of a message that was sent.
func echo(prompt, text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == 0 {
			lines[i] = prompt + line
		} else {
			lines[i] = continued + line
		}
	}
	return lines
}

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
