package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// newApp makes the application of a program. Warnings go to standard error, and the output
// of tools, as far as the level of messages admits them.
func newApp(s *cli.Streams, p *qtype.Program, c *appflags.Clients, store *appflags.Store, ephemeral bool, log *appflags.LogLevel, more ...qtype.Option) (*runtime.App, error) {
	opts, err := c.Options(p.Document.Application)
	if err != nil {
		return nil, err
	}
	stored, err := store.Options(ephemeral)
	if err != nil {
		return nil, err
	}
	opts = append(opts, slices.Concat(stored, more)...)
	if ephemeral {
		opts = append(opts, qtype.WithEphemeral())
	}
	if log.Warnings() {
		opts = append(opts, qtype.WithWarnings(s.Logger("warning: ")))
	}
	if !log.Quiet {
		opts = append(opts, qtype.WithLog(s.Logger("")))
	}
	return qtype.New(p, opts...)
}

// printWarnings writes how many warnings a document has; validate shows them.
func printWarnings(s *cli.Streams, path string, list diag.List) {
	if n := list.Warnings(); n > 0 {
		fmt.Fprintf(s.Err, "%s: see \"qtype validate %s\"\n", textfmt.Count(n, "warning"), terminal.Clean(path))
	}
}

// startTraces returns a context whose runs are sent to the telemetry of an application,
// and a function that sends the rest and must be called at the end. A telemetry that
// cannot be used is a warning: the run does not need it.
func startTraces(ctx context.Context, s *cli.Streams, app *runtime.App, log *appflags.LogLevel) (context.Context, func()) {
	o := telemetry.Options{Version: cli.Version()}
	if log.Warnings() {
		o.Warn = s.Logger("warning: ")
	}
	e, err := telemetry.Open(ctx, app, o)
	if err != nil && o.Warn != nil {
		o.Warn(err.Error() + "; no traces are sent")
	}
	return e.Context(ctx), func() { e.Close(ctx) }
}
