package batch

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Engine runs the rows of a flow in other processes.
type Engine interface {
	// Open finds the run that the configuration resumes, or prepares a new one.
	Open(ctx context.Context, app *runtime.App, flow *spec.Flow, cfg *Config) (EngineRun, error)
}

// EngineRun is one run of an Engine.
type EngineRun interface {
	// ID returns the id of the run, which stays the same when it is resumed.
	ID() string
	// Wait runs the rows of a Config with Waves until the results of all are there. With Config.Detach the error is
	// waves.ErrDetached, unless they are there already.
	Wait(ctx context.Context, job EngineJob) error
	// Run processes the rows, unless Wait has, and yields the results as runtime.App.Run does: in order,
	// failed ones included. It updates the progress and reports the events of the rows
	// that the summary counts. If the context ends, the run does, too.
	Run(ctx context.Context, job EngineJob) iter.Seq2[*runtime.Result, error]
	// Close ends the use of the run. done reports whether all results are written.
	Close(done bool) error
	// Advice returns what an error states about a run that was not completed; empty if
	// it cannot be resumed.
	Advice() string
}

// EngineJob is what an EngineRun runs.
type EngineJob struct {
	Rows      iter.Seq[runtime.Input] // the rows, in order
	ReadError func() error            // why Rows has ended early; nil if it has not
	IsPartial func() bool             // reports, after the last of Rows, whether they are only a part of the input
	Progress  *runtime.Progress       // what is shown
	Event     func(steps.Event)       // counts tokens, turns of memories and fallbacks
	Waves     func(WaveState)         // shows how far the batches are; nil without Config.Waves
}

// Settings returns the flags that change the results of the run, by name.
func (cfg *Config) Settings() map[string]string { return cfg.settings() }

// MaxOutages is how many rows in succession an OutageCheck lets fail.
const MaxOutages = maxOutageFailures

// OutageCheck takes the results of rows in order and counts those that have failed in succession because
// a model rejects the credentials, or a memory store is not usable or a server away for too long: all other
// rows would fail too.
type OutageCheck struct{ limit failureLimit }

// Add returns an error if MaxOutages rows have failed.
func (c *OutageCheck) Add(res *runtime.Result) error { return c.limit.check(res) }

// Last returns how many rows have failed since the last other one, and why.
func (c *OutageCheck) Last() (rows int, cause error) {
	return max(c.limit.rejected, c.limit.unserved), c.limit.cause
}

// openEngine opens the run of the engine; nil if rows run in this process.
func (j *job) openEngine(ctx context.Context) (err error) {
	if j.Engine == nil {
		return nil
	}
	if j.remote, err = j.Engine.Open(ctx, j.app, j.flow, j.Config); err == nil {
		j.in.run = j.remote.ID()
	}
	return err
}

// closeEngine ends the use of the engine's run.
func (j *job) closeEngine(done bool) error {
	if j.remote == nil {
		return nil
	}
	return j.remote.Close(done)
}

// engineJob returns what the engine runs.
func (j *job) engineJob(progress *runtime.Progress, sum *summary) EngineJob {
	job := EngineJob{Rows: j.in.rows, ReadError: func() error { return j.in.err }, IsPartial: j.isPartial, Progress: progress, Event: sum.event}
	if j.Waves != nil {
		job.Waves = j.waves.take
	}
	return job
}

// runRows runs the rows, in this process or by the engine.
func (j *job) runRows(ctx context.Context, progress *runtime.Progress, sum *summary, limit *failureLimit) iter.Seq2[*runtime.Result, error] {
	if j.remote != nil {
		return j.remote.Run(ctx, j.engineJob(progress, sum))
	}
	ctx = remotefs.WithOwn(ctx, j.InputFile, j.Output, j.ErrorFile)
	opts := j.runOptions(progress, sum, limit)
	if j.Waves != nil {
		ctx = steps.WithCallLog(ctx, j.Waves)
		ctx = waves.WithPass(ctx, j.Waves.NewPass(true))
	}
	return j.app.Run(ctx, j.flow.ID, j.in.rows, opts...)
}

// ResumeCommand returns the command line that continues a run.
func ResumeCommand(args []string) string {
	command := []string{"qtype"}
	for _, a := range withoutResume(args) {
		command = append(command, textfmt.ShellQuote(a))
	}
	return strings.Join(append(command, "--resume"), " ")
}

// withoutAddress returns the arguments without an address of --on-end, which may be secret.
func withoutAddress(args []string) (kept []string) {
	for i, a := range args {
		value, joined := strings.CutPrefix(a, "--on-end=")
		isFlag := a == "--on-end" && i+1 < len(args) && isAddress(args[i+1])
		isValue := i > 0 && args[i-1] == "--on-end" && isAddress(a)
		if !isFlag && !isValue && !(joined && isAddress(value)) {
			kept = append(kept, a)
		}
	}
	return kept
}

// withoutResume returns the arguments of a command line without those for interrupted runs.
func withoutResume(args []string) []string {
	args = withoutAddress(args)
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return a == "--resume" || a == "--restart" || a == "--detach" || a == "--cancel" || a == "--rebuy"
	})
}
