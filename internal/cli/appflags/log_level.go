package appflags

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/traceview"
)

// LogLevel are the flags that select what a command writes to standard error.
type LogLevel struct {
	Quiet   bool // no progress: also for the levels warn and error, once Check was called
	level   *cli.EnumFlag
	verbose bool
}

// AddTo adds the flags to a command; quiet describes --quiet.
func (l *LogLevel) AddTo(c *cobra.Command, quiet string) {
	l.level = cli.NewEnumFlag("info", "debug", "warn", "error")
	f := c.Flags()
	f.BoolVarP(&l.Quiet, "quiet", "q", false, quiet)
	f.BoolVar(&l.verbose, "verbose", false, "also what steps, models and tools do, when it begins and ends: --log-level debug")
	l.level.AddTo(c, "log-level", "", "least level of messages: warn is --quiet, error hides warnings too")
}

// Check rejects flags that exclude each other.
func (l *LogLevel) Check(c *cobra.Command) error {
	if given := c.Flags().Changed("log-level"); l.Quiet && l.verbose || given && (l.Quiet || l.verbose) {
		return terminal.Usagef("--quiet, --verbose and --log-level exclude each other")
	}
	if l.verbose {
		l.level.Value = "debug"
	}
	l.Quiet = l.Quiet || l.level.Value == "warn" || l.level.Value == "error"
	return nil
}

// Warnings reports whether warnings are written.
func (l *LogLevel) Warnings() bool { return l.level.Value != "error" }

// Context returns a context whose runs are logged, if the level is debug.
func (l *LogLevel) Context(ctx context.Context, s *cli.Streams) context.Context {
	if l.level.Value != "debug" {
		return ctx
	}
	return traceview.WithLog(ctx, s.Logger("debug: "))
}
