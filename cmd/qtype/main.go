// Command qtype checks and runs applications that are declared in YAML.
//
// Results go to standard output, everything else to standard error. Exit status:
// 0 success, 1 the document or the run failed or was interrupted, 2 the command
// line was wrong, 3 the run waits for approvals (qtype run --suspend).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory/storeurl"
)

// gcBallast is memory in bytes that commands for rows and messages allocate and never
// touch, so it is never resident. The collector runs when the heap has doubled: if
// little memory is in use it would run every 4 MB, which costs a third of the time of
// many small rows (docs/benchmarks.md). Allocating it costs one collection at the
// start, which other commands save.
const gcBallast = 16 << 20

func main() { os.Exit(start()) }

// start runs the command line of this process and returns its exit status.
func start() int {
	setGCPercent(gcRelaxed)
	supervisor := subprocess.Supervise() // does not return in the supervisor of a program
	supervisor.OwnChildren()
	defer supervisor.Close()
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	written := &remotefs.TemporaryFiles{}
	context.AfterFunc(ctx, func() { onSecondSignal(written, signals, stop) })
	ctx = subprocess.With(remotefs.WithTemporaryFiles(ctx, written), supervisor)
	storeurl.Quiet()
	s := &cli.Streams{Streams: terminal.Standard(), Supervisor: supervisor}
	return execute(ctx, s, os.Args[1:])
}

// onSecondSignal lets the next signal end the process at once, as it does by default; before,
// temporary files are removed.
func onSecondSignal(written *remotefs.TemporaryFiles, signals []os.Signal, stop func()) {
	if written.Empty() { // also qtype chat, where an interrupt stops an answer
		stop()
		return
	}
	second := make(chan os.Signal, 1)
	signal.Notify(second, signals...)
	stop()
	received, _ := (<-second).(syscall.Signal)
	written.Remove()
	os.Exit(128 + int(received)) // the exit status that shells report for the signal
}

const (
	// gcRelaxed lets the heap grow to five times the memory in use, at least 16 MB, before it
	// is collected. A start needs 4 MB, after which it would be collected once: a quarter of
	// the time of a command that prints a line. Checking a large document makes much garbage:
	// with 5,000 lines this saves a quarter of the time of a keystroke in an editor, for a peak
	// of 85 to 130 MB instead of 50.
	gcRelaxed = 400
	gcDefault = 100
)

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
		setGCPercent(gcDefault)
		b.memory = make([]byte, gcBallast)
	default:
		setGCPercent(gcDefault)
	}
}

// setGCPercent sets how far the heap grows before it is collected, unless GOGC is set.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// runTree runs the command of root. A panic is reported by the stream that replaces secrets, which
// the text of the go runtime does not pass.
func runTree(ctx context.Context, s *cli.Streams, root *cobra.Command) (err error) {
	defer runtime.KeepAlive(root) // with its ballast
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "internal error: %v\n%s", p, debug.Stack())
			err = cli.ErrSilent
		}
	}()
	return root.ExecuteContext(ctx)
}

// The exit statuses.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitSuspended = 3
)

// execute runs one command line.
func execute(ctx context.Context, s *cli.Streams, args []string) int {
	s.CommandLine = args
	ctx, flush := s.Redact(ctx)
	defer flush()
	root := newRootFor(s, args)
	root.SetArgs(joinTrace(joinShorts(args)))
	err := runTree(ctx, s, root)
	s.Report(err)
	var usage *terminal.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errSuspended):
		return exitSuspended
	}
	return exitFailed
}
