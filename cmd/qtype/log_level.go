package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/traceview"
)

// logLevel are the flags that select what a command writes to standard error.
type logLevel struct {
	level   *enumFlag
	verbose bool
	quiet   bool
}

// addTo adds the flags to a command; quiet describes --quiet.
func (l *logLevel) addTo(c *cobra.Command, quiet string) {
	l.level = newEnumFlag("info", "debug", "warn", "error")
	f := c.Flags()
	f.BoolVarP(&l.quiet, "quiet", "q", false, quiet)
	f.BoolVar(&l.verbose, "verbose", false, "also what steps, models and tools do, when it begins and ends: --log-level debug")
	l.level.addTo(c, "log-level", "", "least level of messages: warn is --quiet, error hides warnings too")
}

// check rejects flags that exclude each other.
func (l *logLevel) check(c *cobra.Command) error {
	if given := c.Flags().Changed("log-level"); l.quiet && l.verbose || given && (l.quiet || l.verbose) {
		return usagef("--quiet, --verbose and --log-level exclude each other")
	}
	if l.verbose {
		l.level.value = "debug"
	}
	l.quiet = l.quiet || l.level.value == "warn" || l.level.value == "error"
	return nil
}

// warnings reports whether warnings are written.
func (l *logLevel) warnings() bool { return l.level.value != "error" }

// context returns a context whose runs are logged, if the level is debug.
func (l *logLevel) context(ctx context.Context, s *streams) context.Context {
	if l.level.value != "debug" {
		return ctx
	}
	return traceview.WithLog(ctx, s.Logger("debug: "))
}
