package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

const (
	// gcRelaxed lets the heap grow to five times the memory in use, at least 16 MB, before it
	// is collected. A start needs 4 MB, after which it would be collected once: a quarter of
	// the time of a command that prints a line. Checking a large document makes much garbage:
	// with 5,000 lines this saves a quarter of the time of a keystroke in an editor, for a peak
	// of 85 to 130 MB instead of 50.
	gcRelaxed = 400
	gcDefault = 100
)

// RelaxGC lets the heap grow further before it is collected, for commands that end soon.
func RelaxGC() { setGCPercent(gcRelaxed) }

// RestoreGC ends what RelaxGC has begun.
func RestoreGC() { setGCPercent(gcDefault) }

// setGCPercent sets how far the heap grows before it is collected, unless GOGC is set.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// WithSignals returns a context that the first signal to end cancels. The next one ends the process at once, as
// it does by default; before, temporary files of the context are removed. Call stop at the end.
func WithSignals(ctx context.Context) (running context.Context, stop func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(ctx, signals...)
	written := &remotefs.TemporaryFiles{}
	context.AfterFunc(ctx, func() { onSecondSignal(written, signals, stop) })
	return remotefs.WithTemporaryFiles(ctx, written), stop
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

// The exit statuses.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ExitStatus returns the exit status of a process whose command ended with an error, or nil.
func ExitStatus(err error) int {
	var usage *terminal.UsageError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &usage):
		return ExitUsage
	}
	return ExitFailed
}
