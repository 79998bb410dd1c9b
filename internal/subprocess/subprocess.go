// Package subprocess runs programs for tools, without a shell: with a given
// environment and limits on time and output. A program ends with all processes that it
// has started: on Linux below a supervisor, elsewhere in a process group.
package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Default limits of output.
const (
	maxOutput = 32 << 20 // bytes of standard output
	tailSize  = 4 << 10  // last bytes of standard error that are kept
)

// waitDelay is how long the pipes of a program may stay open after its end:
// processes that it started may hold them.
const waitDelay = time.Second

// Program is a program to run.
type Program struct {
	Path      string   // file of the program
	Args      []string // without the program's name
	Env       []string // the whole environment, as NAME=value
	MaxOutput int      // limit of standard output in bytes; 0 means 32 MiB

	Supervisor *Supervisor // starts the program; may be nil
	Killed     func()      // called after the process was killed, to end what does not end with it; may be nil
}

// Command returns the program to start, which is killed when ctx ends.
func (p Program) Command(ctx context.Context) *Cmd {
	cmd := p.Supervisor.Command(ctx, p.Path, p.Args, p.Env)
	cmd.killed = p.Killed
	return cmd
}

// Run writes in to the standard input of a new process and returns its standard output.
// Errors are an *ExitError, an *OutputLimitError, the cause of ctx if ctx ended, or the
// error of the system if the program could not be started.
func (p Program) Run(ctx context.Context, in []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &limitedBuffer{limit: p.MaxOutput, full: cancel}
	if out.limit == 0 {
		out.limit = maxOutput
	}
	var tail Tail
	status, err := p.run(ctx, in, out, &tail)
	switch {
	case ctx.Err() != nil && (err != nil || status != "" || out.over):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case status != "":
		return nil, &ExitError{Status: status, LastLine: tail.LastLine()}
	}
	return out.text.Bytes(), nil
}

// run runs the program and returns how it failed; empty if it did not.
func (p Program) run(ctx context.Context, in []byte, out, messages io.Writer) (status string, err error) {
	if p.Supervisor != nil {
		ended, err := p.Supervisor.run(ctx, p, in, out, messages)
		if p.Killed != nil && (err != nil || !ended.Exited()) {
			p.Killed()
		}
		switch {
		case err != nil || ended.Exited() && ended.ExitStatus() == 0:
			return "", err
		case ended.Exited():
			return fmt.Sprintf("exit status %d", ended.ExitStatus()), nil
		}
		return "signal: " + ended.Signal().String(), nil
	}
	cmd := p.Command(ctx)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, messages
	err = cmd.Run()
	if exited, failed := errors.AsType[*exec.ExitError](err); failed {
		return Status(exited.ProcessState), nil
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a process outside of its group may still hold the pipe
		return "", nil
	}
	return "", err
}

// ExitError reports that a program failed.
type ExitError struct {
	Status   string // "exit status 3", "signal: killed"
	LastLine string // last line of standard error, or empty
}

// Error returns the status and the last line of standard error.
func (e *ExitError) Error() string {
	if e.LastLine == "" {
		return e.Status
	}
	return e.Status + ": " + e.LastLine
}

// OutputLimitError reports that a program wrote too much.
type OutputLimitError struct {
	Limit int // in bytes
}

// Error returns the limit.
func (e *OutputLimitError) Error() string {
	if e.Limit >= 1<<20 {
		return fmt.Sprintf("output exceeds %d MiB", e.Limit>>20)
	}
	return fmt.Sprintf("output exceeds %d bytes", e.Limit)
}

// Status returns how a process ended: "exit status 3", "signal: killed".
func Status(s *os.ProcessState) string {
	if s == nil {
		return "process ended"
	}
	return s.String()
}

// limitedBuffer keeps output up to a limit and then cancels the program. It does not
// embed the buffer, whose ReadFrom would ignore the limit.
type limitedBuffer struct {
	text  bytes.Buffer
	limit int
	over  bool // more was written
	full  context.CancelCauseFunc
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > b.limit {
		b.over = true
		b.full(&OutputLimitError{b.limit})
		return 0, &OutputLimitError{b.limit}
	}
	return b.text.Write(p)
}

// Tail keeps the end of what is written to it. It is safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write never returns an error.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// LastLine returns the last line that is not blank, cut to 300 characters.
func (t *Tail) LastLine() string {
	lines := t.LastLines()
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// LastLines returns the last three lines that are not blank, each cut to 300 characters.
func (t *Tail) LastLines() []string {
	const most, width = 3, 300
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.FieldsFuncSeq(string(t.text), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width-1]) + "…"
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-most):]
}

// Reset forgets what was written.
func (t *Tail) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = nil
}

// CloseAll closes files, of which some may be nil.
func CloseAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// inherited returns the variables that a program gets from our environment: paths,
// home, temporary directories, certificates and locale. None is a secret. A
// document declares all others.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TZ",
		"TMPDIR", "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR", "NO_COLOR",
		"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", // Windows
	}
}

// Environment returns the environment of a program, sorted: the inherited variables
// and those named by also, both by lookup, and the given ones, which take precedence.
func Environment(lookup func(string) string, given map[string]string, also ...string) []string {
	vars := map[string]string{}
	for _, name := range append(inherited(), also...) {
		if text := lookup(name); text != "" {
			vars[name] = text
		}
	}
	maps.Copy(vars, given)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// Find returns the file of a program. It looks up a name in the directories of path,
// which has the form of PATH; a relative path is relative to base.
func Find(name, base, path string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("invalid program name %q", name)
	case !strings.ContainsAny(name, `/\`):
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue // never run a program of the current directory by its name
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
		return "", fmt.Errorf("program %q not found in PATH", name)
	case !filepath.IsAbs(name):
		name = filepath.Join(base, filepath.FromSlash(name))
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath(full)
	switch info, statErr := os.Stat(full); {
	case err == nil:
		return found, nil
	case statErr != nil:
		return "", fmt.Errorf("program %s not found", name)
	case info.Mode()&fs.ModeType != 0:
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	return "", fmt.Errorf("%s is not executable", name)
}
