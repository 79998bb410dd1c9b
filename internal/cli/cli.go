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
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
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

// CommandGroup returns a command that only has subcommands.
func CommandGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noCommand, RunE: showHelp}
	c.AddCommand(commands...)
	return c
}

// checkCompletion makes the command completion of cobra reject unknown shells and arguments, as all
// other commands do.
func checkCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args, c.RunE = noCommand, showHelp
		for _, shell := range c.Commands() {
			shell.Args = Arguments()
		}
	}
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// missingNote is the annotation of a root with what is appended to the error for an unknown command.
const missingNote = "qtype_missing"

// noCommand rejects an unknown subcommand and suggests the nearest one.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	near := diag.DidYouMean(args[0], names)
	if meant := habitualCommand(c, args[0]); meant != "" {
		near = fmt.Sprintf("; did you mean %q?", meant)
	} else if note := c.Annotations[missingNote]; near == "" && note != "" {
		near = "; " + note
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s has no command %q%s", c.CommandPath(), args[0], near)}
}

// Arguments requires one argument for each description, in which "qtype " is replaced by the name of the program.
func Arguments(descriptions ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(descriptions):
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s needs %s", c.CommandPath(), strings.ReplaceAll(descriptions[len(args)], "qtype ", c.Root().Name()+" "))}
		case len(args) > len(descriptions):
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s: unexpected argument %q", c.CommandPath(), args[len(descriptions)])}
		}
		return nil
	}
}

// OptionalArgument allows one argument at most.
func OptionalArgument(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s takes one %s", c.CommandPath(), name)}
		}
		return nil
	}
}

// FlagError describes a wrong flag in one line and suggests the nearest one.
func FlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	reason := err.Error()
	switch {
	case errors.As(err, &unknown):
		reason = unknownFlag(c, unknown)
	case errors.As(err, &bare):
		reason = fmt.Sprintf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		reason = fmt.Sprintf("--%s cannot be %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected(invalid.GetFlag()))
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: reason}
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError) string {
	if short := e.GetSpecifiedShortnames(); short != "" {
		return fmt.Sprintf("%s has no flag -%s", c.CommandPath(), e.GetSpecifiedName())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + e.GetSpecifiedName()
	near := diag.DidYouMean(name, names)
	if hint := habitualFlag(c, e.GetSpecifiedName()); hint != "" {
		near = "; " + hint
	}
	return fmt.Sprintf("%s has no flag %s%s", c.CommandPath(), name, near)
}

func expected(f *pflag.Flag) string {
	if c, ok := f.Value.(*EnumFlag); ok {
		return "one of " + textfmt.List(c.known())
	}
	switch kind := f.Value.Type(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "duration":
		return "a duration such as 90s or 2h"
	default:
		return "a " + kind
	}
}

// checkFlags rejects the empty value of a flag, which would mean its default: often it is an unset variable of a script.
func checkFlags(c *cobra.Command) error {
	var empty *pflag.Flag
	c.Flags().Visit(func(f *pflag.Flag) {
		if empty == nil && !mayBeEmpty[f.Name] && isEmpty(f.Value) {
			empty = f
		}
	})
	if empty == nil {
		return nil
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("--%s must not be empty", empty.Name)}
}

// mayBeEmpty are the flags whose empty value is one of their own: that of an empty text, and that of the first page.
//
//nolint:gochecknoglobals // a constant table
var mayBeEmpty = map[string]bool{"input": true, "after": true}

// isEmpty reports whether a flag has an empty text, or one of its texts is empty.
func isEmpty(v pflag.Value) bool {
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	if list, ok := v.(pflag.SliceValue); ok {
		texts := list.GetSlice()
		return len(texts) == 0 || slices.ContainsFunc(texts, blank)
	}
	return v.Type() == "string" && blank(v.String())
}
