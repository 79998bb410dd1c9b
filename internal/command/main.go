// Package command is the program qtype: its commands, and Main, which a main function calls with
// the table of the parts that the program is made of.
package command

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
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
	ctx = p.context(subprocess.With(ctx, supervisor))
	s := &cli.Streams{Streams: terminal.Standard(), Supervisor: supervisor}
	return execute(ctx, s, os.Args[1:])
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

// execute runs one command line.
func execute(ctx context.Context, s *cli.Streams, args []string) int {
	s.Advice = clienttool.Advice
	err := program().Execute(ctx, s, args)
	if errors.Is(err, errSuspended) || errors.Is(err, errDetached) {
		return exitSuspended
	}
	return cli.ExitStatus(err)
}
