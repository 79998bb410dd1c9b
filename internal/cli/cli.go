// Package cli is what the commands of qtype share: streams, errors and their report, flags that
// several commands have, what a wrong command line is answered with, help texts and completion.
//
// The commands are in cmd/qtype and cmd/qtype-check, which have tables of them, and in the packages author and state below this
// one; package appflags has the flags of commands that run applications.
package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Streams are the command's streams and command line.
type Streams struct {
	terminal.Streams
	CommandLine []string // without the program's name
	Program     string   // the program's name

	Supervisor *subprocess.Supervisor // starts the programs of tools; nil for none

	// Advice returns what is appended to an error of an application, such as the flag that
	// avoids it, empty for nothing; it may be nil.
	Advice func(error) string
}

// ErrSilent fails a command that has reported its errors itself.
var ErrSilent = errors.New("failed")

// ErrInterrupted fails a command that the user has stopped.
var ErrInterrupted = errors.New("interrupted")

// Redact replaces secrets of loaded documents in all that the command writes. On a terminal it escapes
// terminal control characters in JSON. The returned function writes the rest at the end.
func (s *Streams) Redact(ctx context.Context) (redacting context.Context, flush func()) {
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

// Report writes the error of a command to standard error: diagnostics as blocks,
// anything else as one line.
func (s *Streams) Report(err error) {
	var usage *terminal.UsageError
	switch list := diag.FromError(err); {
	case err == nil, errors.Is(err, ErrSilent), errors.Is(err, syscall.EPIPE):
	case len(list) > 0:
		_ = diag.Text(s.Err, list, s.DiagnosticOptions(s.ErrTerminal)) // there is nowhere to report an error
	case errors.As(err, &usage) && usage.Command != "":
		fmt.Fprintf(s.Err, "error: %s\nsee %q\n", terminal.Clean(err.Error()), usage.Command+" --help")
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Err, "error: interrupted")
	default:
		fmt.Fprintf(s.Err, "error: %s%s\n", terminal.Clean(err.Error()), s.advice(err))
	}
}

func (s *Streams) advice(err error) string {
	if s.Advice == nil {
		return ""
	}
	return s.Advice(err)
}

// DiagnosticOptions returns how diagnostics are shown.
func (s *Streams) DiagnosticOptions(isTerminal bool) diag.TextOptions {
	o := diag.TextOptions{Program: s.Program}
	if isTerminal {
		o.Color, o.Width = s.Color, s.Width
	}
	return o
}
