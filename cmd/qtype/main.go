// Command qtype checks and runs applications that are declared in YAML.
//
// Results go to standard output, everything else to standard error. Exit status:
// 0 done, 1 the document or the run failed or was interrupted, 2 the command
// line was wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/spec/diag"
)

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// gcBallast is memory in bytes that commands of rows and messages hold and never
// touch, so that it is never resident. The collector lets the heap double before it
// runs: with little alive it would run every 4 MB, which costs a third of the time of
// many small rows (docs/benchmarks.md). To hold it costs one collection at the start,
// which other commands save.
const gcBallast = 16 << 20

func main() { os.Exit(start()) }

// start runs the command line of this process and gives its exit status.
func start() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it so
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	storeurl.Quiet()
	s := standardStreams()
	defer runtime.KeepAlive(s) // with its floor
	return execute(ctx, s, os.Args[1:])
}

// tuneGC decides, once the command is known, how often garbage is collected.
func (s *streams) tuneGC(c *cobra.Command, _ []string) {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	switch c.Name() {
	case "run", "chat", "memory", "test":
		s.floor = make([]byte, gcBallast)
	case "validate", "diff", "convert", "lsp":
		setGCPercent()
	}
}

// setGCPercent lets memory grow to five times of what is in use, and to 16 MB at least,
// before garbage is collected, unless GOGC says otherwise: a check of a large document
// makes much of it, and in an editor typing waits. With 5,000 lines that is a quarter of
// the time of a keystroke, for a peak of 85 to 130 MB instead of 50.
func setGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// execute runs one command line.
func execute(ctx context.Context, s *streams, args []string) int {
	s.args = args
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	s.report(err)
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// errSilent fails a command that has said why already.
var errSilent = errors.New("failed")

// report tells on standard error why a command failed: a document's faults as
// blocks, anything else as one line.
func (s *streams) report(err error) {
	var usage *usageError
	switch faults := diag.FromError(err); {
	case err == nil, errors.Is(err, errSilent), errors.Is(err, syscall.EPIPE):
	case len(faults) > 0:
		s.print(s.err, func(w io.Writer) error { return diag.Text(w, faults, s.diagText(s.errTerminal)) })
	case errors.As(err, &usage) && usage.command != "":
		fmt.Fprintf(s.err, "error: %s\n%s --help tells more\n", clean(err.Error()), usage.command)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.err, "error: interrupted")
	default:
		fmt.Fprintf(s.err, "error: %s%s\n", clean(err.Error()), advice(err))
	}
}

// usageError says that the command line was wrong.
type usageError struct {
	command string // whose help tells more, mostly empty
	reason  string // what is wrong, one line
}

// Error is the reason.
func (e *usageError) Error() string { return e.reason }

// usagef makes a usage error.
func usagef(format string, args ...any) error {
	return &usageError{reason: fmt.Sprintf(format, args...)}
}

// joinNames lists names as a sentence does.
func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// didYouMean is "; did you mean x?" where a name is near one of those there are.
func didYouMean(name string, names []string) string {
	if near := diag.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
