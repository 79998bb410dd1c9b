// Package command is the program qtype: its commands, and Main, which a main function calls with
// the table of the parts that the program is made of.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/cli/state"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// gcBallast is memory in bytes that commands for rows and messages allocate and never
// touch, so it is never resident. The collector runs when the heap has doubled: if
// little memory is in use it would run every 4 MB, which costs a third of the time of
// many small rows (docs/benchmarks.md). Allocating it costs one collection at the
// start, which other commands save.
const gcBallast = 16 << 20

// Main runs the command line of this process and returns its exit status.
func Main(p Parts) int {
	cli.RelaxGC()
	supervisor := subprocess.Supervise() // does not return in the supervisor of a program
	supervisor.OwnChildren()
	defer supervisor.Close()
	ctx, stop := cli.WithSignals(context.Background())
	defer stop()
	ctx = subprocess.With(ctx, supervisor)
	s := &cli.Streams{Streams: terminal.Standard(), Supervisor: supervisor}
	return Execute(ctx, p, s, os.Args[1:])
}

// ballast is the memory of gcBallast. It is part of the command tree, which exists as long as the command runs.
type ballast struct{ memory []byte }

// tuneGC adjusts the garbage collector, which is relaxed at the start, to the command.
func (b *ballast) tuneGC(c *cobra.Command, _ []string) {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	switch c.Name() {
	case "validate", "diff", "convert", "lsp", "fmt", "explain", "visualize", "version", "init":
	case "run", "chat", "serve", "memory", "test":
		cli.RestoreGC()
		b.memory = make([]byte, gcBallast)
	default:
		cli.RestoreGC()
	}
}

// exitSuspended is the exit status of a run that waits for approvals or batches.
const exitSuspended = 3

// Execute runs one command line in a program of these parts and returns its exit status.
func Execute(ctx context.Context, p Parts, s *cli.Streams, args []string) int {
	ctx = p.context(ctx)
	s.Advice = clienttool.Advice
	err := program().Execute(ctx, s, args)
	if errors.Is(err, errSuspended) || errors.Is(err, errDetached) {
		return exitSuspended
	}
	return cli.ExitStatus(err)
}

// program returns the program qtype with its commands.
func program() *cli.Program {
	const running, stored = "Run:", "State:"
	return &cli.Program{
		Name: "qtype", Short: "Check and run LLM applications that are declared in YAML",
		Example: `  qtype validate app.qtype.yaml
  qtype run app.qtype.yaml -I messages.csv
  qtype chat app.qtype.yaml --session me
  qtype memory list app.qtype.yaml`,
		PreRun: new(ballast).tuneGC, Complete: appflags.CompleteFlags, Words: joinTrace,
		Commands: slices.Concat([]cli.Command{
			{Name: "run", Make: newRun, Group: running}, {Name: "chat", Make: newChat, Group: running}, {Name: "serve", Make: newServe, Group: running},
			{Name: "worker", Make: newWorker, Group: running}, {Name: "test", Make: newTest, Group: running}, {Name: "eval", Make: newEval, Group: running},
			{Name: "optimize", Make: newOptimize, Group: running},
			{Name: "cost", Make: newCost, Group: running},
		}, withModels(author.Commands()), []cli.Command{
			{Name: "mcp", Make: newMCP, Group: author.Group}, {Name: "convert", Make: newConvert, Group: author.Group},
			{Name: "memory", Make: state.NewMemory, Group: stored}, {Name: "index", Make: state.NewIndex, Group: stored}, {Name: "cache", Make: state.NewCache, Group: stored},
			{Name: "runs", Make: newRuns, Group: stored}, {Name: "login", Make: state.NewLogin, Group: stored}, {Name: "clean", Make: state.NewClean, Group: stored},
			{Name: "version", Make: newVersion},
		}),
	}
}

// withModels replaces the command models by one that also calls servers.
func withModels(commands []cli.Command) []cli.Command {
	for i := range commands {
		if commands[i].Name == "models" {
			commands[i].Make = newModels
		}
	}
	return commands
}

// newRootFor returns the part of the command tree that a command line needs.
func newRootFor(s *cli.Streams, args []string) *cobra.Command { return program().RootFor(s, args) }

// newRoot returns the command tree.
func newRoot(s *cli.Streams) *cobra.Command { return program().Root(s) }

// newRuns returns qtype runs, which retries a run by its command line.
func newRuns(s *cli.Streams) *cobra.Command {
	return state.NewRuns(s, func(ctx context.Context, args []string) error { return program().Nested(ctx, s, args) })
}

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
