// Package child runs other programs for tools: with an environment of their own,
// bounded in time and output, and gone with everything they started when their
// time is over. No shell stands between.
package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Limits of what a program may say where its Program names none.
const (
	maxOutput = 32 << 20 // bytes of standard output
	tailSize  = 4 << 10  // bytes of standard error that are kept: the last ones
)

// grace is how long the pipes of a program that was ended may stay open: what it
// started and that escaped holds them.
const grace = time.Second

// Program is what is run.
type Program struct {
	Path      string   // the program's file
	Args      []string // its arguments
	Env       []string // all that it sees of an environment, as NAME=value
	MaxOutput int      // the most bytes of standard output; 32 MiB where it is 0
}

// Run gives in to a fresh process on its standard input and is what it wrote to
// its standard output. Errors are an *ExitError where it ended badly, a
// *OutputLimitError where it wrote too much, the context's cause where that ended,
// and that of the system where it could not be started.
func (p Program) Run(ctx context.Context, in []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.Path, p.Args...) //nolint:gosec // the operator's document names the program
	out := &limitedBuffer{limit: p.MaxOutput, full: cancel}
	if out.limit == 0 {
		out.limit = maxOutput
	}
	var tail Tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = bytes.NewReader(in), out, &tail, p.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be all of ours
	}
	Group(cmd)
	cmd.WaitDelay = grace
	err := cmd.Run()
	exited, bad := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil && (err != nil || out.over):
		return nil, context.Cause(ctx)
	case bad:
		return nil, &ExitError{Status: Status(exited.ProcessState), Said: tail.LastLine()}
	case errors.Is(err, exec.ErrWaitDelay), err == nil:
		return out.text.Bytes(), nil // what it started and left running is not waited for
	}
	return nil, err
}

// ExitError says that a program ended badly.
type ExitError struct {
	Status string // how: "exit status 3", "signal: killed"
	Said   string // the last line that it wrote to standard error; empty without one
}

// Error is how it ended and the last that it said.
func (e *ExitError) Error() string {
	if e.Said == "" {
		return e.Status
	}
	return e.Status + ": " + e.Said
}

// OutputLimitError says that a program wrote more than it may.
type OutputLimitError struct {
	Limit int // the most bytes
}

// Error names the limit.
func (e *OutputLimitError) Error() string {
	if e.Limit >= 1<<20 {
		return fmt.Sprintf("it wrote more than %d MiB", e.Limit>>20)
	}
	return fmt.Sprintf("it wrote more than %d bytes", e.Limit)
}

// Status is how a process ended, in words: "exit status 3", "signal: killed".
func Status(s *os.ProcessState) string {
	if s == nil {
		return "it is gone"
	}
	return s.String()
}

// limitedBuffer keeps output up to a limit, and ends the program that goes beyond. The
// buffer is not embedded: its ReadFrom would read past the limit.
type limitedBuffer struct {
	text  bytes.Buffer
	limit int
	over  bool // more was written
	full  context.CancelCauseFunc
}

// Write takes bytes until there are too many.
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

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// LastLine is the last line that is not blank, cut to 300 characters.
func (t *Tail) LastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.text))
	text = strings.TrimSpace(text[strings.LastIndexAny(text, "\r\n")+1:])
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:299]) + "…"
	}
	return text
}
