package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec/diag"
)

// streams are the command's streams and command line.
type streams struct {
	terminal.Streams
	args    []string // without the program's name
	ballast []byte   // see gcBallast; nil if the command has none

	supervisor *subprocess.Supervisor // starts the programs of tools; nil for none
}

// The exit statuses.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitSuspended = 3
)

// errSilent fails a command that has reported its errors itself.
var errSilent = errors.New("failed")

// errInterrupted fails a command that the user has stopped.
var errInterrupted = errors.New("interrupted")

// usagef reports a wrong command line.
func usagef(format string, args ...any) error { return terminal.Usagef(format, args...) }

// redactStreams replaces the secrets of documents that the command loads in all that it
// writes, and on a terminal escapes what JSON has and a terminal would act upon. The returned function writes the rest at the end.
func (s *streams) redactStreams(ctx context.Context) (redacting context.Context, flush func()) {
	r := redact.New()
	to := s.Out
	if s.OutTerminal {
		to = terminal.Escape(to)
	}
	out, errs := r.NewWriter(to), r.NewWriter(s.Err)
	s.Out, s.Err = out, errs
	return redact.With(ctx, r), func() {
		_ = out.Flush() // there is nowhere to report an error
		_ = errs.Flush()
	}
}

// report writes the error of a command to standard error: diagnostics as blocks,
// anything else as one line.
func (s *streams) report(err error) {
	var usage *terminal.UsageError
	switch list := diag.FromError(err); {
	case err == nil, errors.Is(err, errSilent), errors.Is(err, syscall.EPIPE):
	case len(list) > 0:
		s.print(s.Err, func(w io.Writer) error { return diag.Text(w, list, s.diagText(s.ErrTerminal)) })
	case errors.As(err, &usage) && usage.Command != "":
		fmt.Fprintf(s.Err, "error: %s\nsee %q\n", terminal.Clean(err.Error()), usage.Command+" --help")
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Err, "error: interrupted")
	default:
		fmt.Fprintf(s.Err, "error: %s%s\n", terminal.Clean(err.Error()), clienttool.Advice(err))
	}
}

// print ignores write errors: there is nowhere to report them.
func (s *streams) print(w io.Writer, write func(io.Writer) error) { _ = write(w) }

// diagText returns how diagnostics are shown.
func (s *streams) diagText(isTerminal bool) diag.TextOptions {
	if !isTerminal {
		return diag.TextOptions{}
	}
	return diag.TextOptions{Color: s.Color, Width: s.Width}
}
