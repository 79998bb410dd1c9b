// Package appflags has the flags that commands which run applications share: what a document may
// reach, where conversations are stored, who answers for the caller, and what is logged.
package appflags

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/traceview"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// CloseApp closes an application at the end of a command.
func CloseApp(ctx context.Context, app *runtime.App, err *error) {
	if closing := app.Close(context.WithoutCancel(ctx)); *err == nil {
		*err = closing
	}
}

// WithActor returns a context whose changes and calls are those of the user of the system.
func WithActor(ctx context.Context) context.Context { return memory.WithActor(ctx, actor()) }

// actor returns the name of the user of the system.
func actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// Access are the flags for what a document may reach. docs/security.md describes them.
type Access struct {
	trust   bool
	sandbox bool
	grants  qtype.Grants
}

// AddTo adds the flags.
func (a *Access) AddTo(f *pflag.FlagSet) {
	f.BoolVar(&a.trust, "trust", false, "trust a document from an address, until it changes")
	f.BoolVar(&a.sandbox, "sandbox", false, "restrict a local document as one from an address")
	f.StringArrayVar(&a.grants.Env, "env", nil, "let a restricted document have the environment variable `NAME`")
	f.StringArrayVar(&a.grants.Read, "allow-read", nil, "let a restricted document read the file or folder `PATH`")
	f.StringArrayVar(&a.grants.Programs, "allow-program", nil, "let a restricted document start the program `NAME`")
	f.StringArrayVar(&a.grants.Hosts, "allow-host", nil, "let a restricted document call the database or private server `HOST`")
	f.StringVar(&a.grants.OutDir, "out-dir", "", "the `FOLDER` for files that the document writes")
}

// Given reports whether one of the flags is set.
func (a *Access) Given() bool {
	g := a.grants
	return a.trust || a.sandbox || len(g.Env)+len(g.Read)+len(g.Programs)+len(g.Hosts) > 0 || g.OutDir != ""
}

// Options returns the options for the flags and others.
func (a *Access) Options(others ...qtype.Option) []qtype.Option {
	all := append(slices.Clone(others), qtype.WithGrants(a.grants))
	if a.trust {
		all = append(all, qtype.WithTrust())
	}
	if a.sandbox {
		all = append(all, qtype.WithSandbox())
	}
	return all
}

// Reload returns the options for reading a document again: only what the user has seen is
// trusted.
func (a *Access) Reload(others ...qtype.Option) []qtype.Option {
	again := *a
	again.trust = false
	return again.Options(others...)
}

// auditVariable is the environment variable with the file of --audit-log.
const auditVariable = "QTYPE_AUDIT_LOG"

// Audit is the flag --audit-log.
type Audit struct{ File string }

// AddTo adds the flag.
func (a *Audit) AddTo(f *pflag.FlagSet) {
	f.StringVar(&a.File, "audit-log", "", "append a line of JSON for each approval, call and result of a tool to `FILE` (default: the file that "+auditVariable+" names)")
}

// Path returns the file of the log, empty for none.
func (a *Audit) Path() string { return cmp.Or(a.File, os.Getenv(auditVariable)) }

// Check rejects a log in a file that is used otherwise: it would be replaced, or change an input.
func (a *Audit) Check(others ...string) error {
	for _, other := range others {
		if remotefs.IsSame(a.Path(), other) {
			return terminal.Usagef("the audit log %s is another file of this command: use another name", a.Path())
		}
	}
	return nil
}

// Options returns the options of an application whose calls are recorded.
func (a *Audit) Options() ([]qtype.Option, error) {
	if a.Path() == "" {
		return nil, nil
	}
	option, err := qtype.WithAuditLog(a.Path())
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be written: %w", err)
	}
	return []qtype.Option{option}, nil
}

// Context returns a context in which the user of the system makes the calls.
func (a *Audit) Context(ctx context.Context) context.Context {
	if a.Path() == "" {
		return ctx
	}
	return WithActor(ctx)
}

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

// Store is the flag --store.
type Store struct{ address string }

// AddTo adds the flag.
func (s *Store) AddTo(f *pflag.FlagSet) {
	f.StringVar(&s.address, "store", "", "`URL` of the store of memories for which the document names none: sqlite:PATH, postgres://… or redis://…")
}

// Given reports whether the flag is set.
func (s *Store) Given() bool { return s.address != "" }

// Options returns the options of an application for the flag.
func (s *Store) Options(ephemeral bool) ([]qtype.Option, error) {
	switch {
	case s.address == "":
		return nil, nil
	case ephemeral:
		return nil, terminal.Usagef("--store and --ephemeral exclude each other")
	}
	return []qtype.Option{qtype.WithDefaultStore(s.address)}, nil
}
