// Package batch runs a flow over the rows of a file, or once over a single input. It
// writes the results to a file or a terminal, shows progress, collects failed rows,
// and resumes runs that were interrupted.
package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/chatui"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/traceview"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/steps"
)

// Config describes a run.
type Config struct {
	Flow          string        // the flow's id; empty for the first flow
	Input         string        // the rows as JSON or text, "@FILE", or "-" for standard input
	InputFile     string        // the file with the rows, if Input is empty
	Table         spec.Table    // how the file with the rows is read; what it sets replaces what the flow sets
	Output        string        // the file for the results, Parquet if it has no suffix; empty for standard output
	Format        string        // of standard output: a format of package records, "table", "text", or empty for the default
	Session       string        // the session of all rows
	SessionColumn string        // the column with the session of each row; empty for session_id or session
	SessionPerRow bool          // each row has a new session
	User          string        // the user to whom the sessions belong; empty for none
	UserColumn    string        // the column with the user of each row; empty for user_id or user
	RunID         string        // an id that is the same when the run is continued; empty for a new one
	ErrorFile     string        // the file for failed rows; empty for none
	Offset        int64         // rows to skip
	Limit         int64         // the maximum number of rows; 0 for all
	MaxFailures   int64         // the number of failed rows that stops the run; 0 for any number
	FailFast      bool          // MaxFailures is 1
	Outage        time.Duration // how long rows wait for a model or a store whose server is away; 0 to let them fail
	MakeFolders   bool          // Check accepts files in folders that do not exist: they are created
	Resume        bool          // continue an interrupted run
	Restart       bool          // discard an interrupted run
	RetryFailed   bool          // with Resume: run failed rows again
	Ephemeral     bool          // memories are not stored
	Quiet         bool          // no progress, and a summary of failures only
	Prompts       bool          // the user may be prompted, so no progress bars are drawn
	Waves         *waves.Run    // makes the calls of models in batches of their providers; nil to make them at once
	Flex          bool          // the application requests the tier flex
	Detach        bool          // with Waves: end when the batches are created, with ErrDetached
	Finish        Finish        // with Waves: when the rest is done without batches
	ProgressJSON  bool          // with Waves: standard output has the progress in JSON
	OnEnd         string        // gets an End when the run has ended: a program with arguments, or the address of a server
	Rebuy         bool          // with Waves and Resume: make the calls of batches again that their providers have lost
	Cancel        bool          // with Waves: cancel the batches of an interrupted run, and end
	Engine        Engine        // runs the rows in other processes; nil for this one

	Trace   *traceview.Trace // shows what rows did; nil for nothing
	Streams *terminal.Streams
	Command []string // the arguments of the command line, for advice on resuming
}

// ErrRowsFailed is returned by Run if the run is complete but rows failed; the
// summary has the reasons.
var ErrRowsFailed = errors.New("rows failed")

// errInterrupted stops a run that the user has interrupted.
var errInterrupted = errors.New("interrupted")

// Run runs the flow. A terminal.UsageError concerns the configuration.
func Run(ctx context.Context, app *runtime.App, cfg Config) error {
	if cfg.FailFast {
		cfg.MaxFailures = 1
	}
	flow, err := selectFlow(app, cfg.Flow)
	if err != nil {
		return err
	}
	in, err := openInput(ctx, &cfg, flow)
	if err != nil {
		return err
	}
	defer in.close()
	models, err := app.Models(flow.ID)
	if err != nil {
		return err
	}
	j := &job{Config: &cfg, app: app, flow: flow, in: in}
	if j.results, err = newSink(ctx, &cfg, flow, in); err != nil {
		return err
	}
	if err = j.openEngine(ctx); err == nil {
		j.journal, j.note, err = openJournal(app, flow, &cfg)
	}
	if err != nil {
		j.results.abort()
		return err
	}
	if j.journal != nil {
		in.run = j.journal.checkpoints.RunID()
	}
	if err := errors.Join(j.checkFlex(models), j.openWaves(ctx, models)); err != nil || cfg.Cancel {
		j.results.abort()
		return errors.Join(err, j.journal.end(false), j.closeEngine(false))
	}
	batchSteps, err := app.BatchSteps(flow)
	j.batches = len(batchSteps) > 0 || err != nil
	if j.failures, err = newFailureFile(ctx, &cfg, in, flow, j.batches); err != nil {
		j.results.abort()
		return errors.Join(err, j.journal.end(false), j.closeEngine(false))
	}
	j.printHeader(models)
	return j.execute(ctx)
}

func selectFlow(app *runtime.App, id string) (*spec.Flow, error) {
	flow, err := app.Flow(id)
	var none *runtime.NoFlowError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("%w%s", err, diag.DidYouMean(none.ID, none.Flows))
	}
	return flow, err
}

// job is a run with everything that it needs.
type job struct {
	*Config
	app      *runtime.App
	flow     *spec.Flow
	in       *input
	results  sink
	failures *failureFile
	journal  *journal  // nil if there is none
	remote   EngineRun // nil if the rows run in this process
	note     string    // why there is no journal, if the user may expect one
	waves    *waveProgress
	batches  bool // the flow has batch steps: results do not belong to single rows
}

// rowsRead returns how many rows of the input were read, in this run and before.
func (j *job) rowsRead(progress *runtime.Progress) int64 {
	read, _, _ := progress.Rows()
	if j.journal != nil {
		read += j.journal.before
	}
	return read
}

// longRun is the number of rows from which on a run gets a note if it cannot be resumed.
const longRun = 100

// printHeader writes what is run, on which rows, with which models.
func (j *job) printHeader(models []model.Info) {
	if j.journal == nil && j.note != "" && (j.in.total < 0 || j.in.total >= longRun) {
		defer fmt.Fprintln(j.Streams.Err, "note: "+terminal.Clean(j.note)) // after the header
	}
	if j.Quiet {
		return
	}
	parts := []string{j.app.Spec().ID, "flow " + j.flow.ID}
	if j.in.name != "" {
		rows := "rows"
		if j.in.total >= 0 {
			rows = textfmt.Count(j.in.total, "row")
		}
		parts = append(parts, rows+" from "+j.in.name)
	}
	for _, m := range models {
		parts = append(parts, chatui.DescribeModel(m))
	}
	fmt.Fprintln(j.Streams.Err, terminal.Clean(strings.Join(parts, " · ")))
	if j.in.newSession != "" && !j.Ephemeral {
		fmt.Fprintln(j.Streams.Err, "new conversation: continue it with "+terminal.Clean(j.in.newSessionFlags()))
	}
	if j.journal != nil && j.journal.before > 0 {
		fmt.Fprintf(j.Streams.Err, "resumed: %s %s before\n", textfmt.Count(j.journal.before, "row"), j.journal.progress())
	}
}

// execute runs the flow over the rows, and reports its end.
func (j *job) execute(ctx context.Context) error {
	progress := &runtime.Progress{}
	sum := newSummary(j, progress)
	err := j.writeAll(ctx, progress, sum)
	j.notify(ctx, sum, err)
	return err
}

// writeAll runs the flow over the rows, completes the outputs, and writes the summary.
func (j *job) writeAll(ctx context.Context, progress *runtime.Progress, sum *summary) error {
	err := j.runWaves(ctx, progress, sum)
	show := j.showProgress(ctx, progress)
	if err == nil {
		err = j.writeResults(ctx, progress, sum, show)
	}
	broken := err == nil && j.in.err != nil
	if broken {
		err = j.in.err
	}
	if err == nil {
		err = j.results.close()
		sum.written = err == nil && j.Output != ""
	} else {
		j.results.abort()
	}
	show.stop()
	if closing := j.failures.close(); err == nil {
		err = closing
	}
	if err != nil && ctx.Err() != nil { // an interrupt after the last row has no effect
		err = j.interrupted(progress)
	}
	switch {
	case broken && j.Output != "": // the fixed input is another run: this one cannot be resumed
		err = fmt.Errorf("%w: %s was not written", err, j.Output)
	case err != nil && !broken:
		err = j.explainUnfinished(err)
	}
	if closing := errors.Join(j.closeWaves(err == nil), j.journal.end(err == nil || broken), j.closeEngine(err == nil)); err == nil {
		err = closing
	}
	if _, done, _ := progress.Rows(); err == nil || done > 0 {
		sum.print()
	}
	if err == nil && sum.failed > 0 {
		err = ErrRowsFailed
	}
	return err
}

// interrupted returns the error of a run that the user has interrupted.
func (j *job) interrupted(progress *runtime.Progress) error {
	_, done, _ := progress.Rows()
	if j.batches || j.Waves != nil {
		done = j.rowsRead(progress)
	}
	return fmt.Errorf("%w after %s", errInterrupted, textfmt.Count(done, "row"))
}

// explainUnfinished adds that the output was not written, and how to resume the run.
func (j *job) explainUnfinished(err error) error {
	if errors.Is(err, waves.ErrDetached) {
		return j.detached()
	}
	if j.Output == "" || errors.Is(err, checkpoint.ErrBusy) {
		return err
	}
	advice := j.journal.advice(j.Command)
	if j.Waves != nil && j.remote == nil {
		advice = j.wavesAdvice(err)
	}
	if j.remote != nil && j.remote.Advice() != "" {
		advice = ": " + j.remote.Advice() + "; continue with: " + ResumeCommand(j.Command)
	}
	return fmt.Errorf("%w: %s was not written%s", err, j.Output, advice)
}

// writeResults runs the flow and writes each result.
func (j *job) writeResults(ctx context.Context, progress *runtime.Progress, sum *summary, show *display) error {
	j.results.setDisplay(show)
	limit := &failureLimit{max: j.MaxFailures}
	for res, err := range j.runRows(ctx, progress, sum, limit) {
		if err != nil {
			return err
		}
		if err := j.writeResult(res, sum); err != nil {
			return err
		}
		j.Trace.RowDone(res.Number)
		if err := limit.check(res); err != nil {
			return err
		}
	}
	return nil
}

// runOptions returns the options of a run in this process.
func (j *job) runOptions(progress *runtime.Progress, sum *summary, limit *failureLimit) []runtime.RunOption {
	opts := []runtime.RunOption{runtime.WithProgress(progress), runtime.WithEvents(sum.event, steps.EventUsage, steps.EventTurn, steps.EventFallback, steps.EventDropped, steps.EventShortened, steps.EventToolResult), runtime.WithDeferFailed(limit.mayDefer), runtime.WithOutage(j.Outage)}
	if !j.Quiet && j.in.file != nil {
		opts = append(opts, runtime.WithStepTimes())
	}
	opts = append(opts, runtime.WithPartialInput(j.partialReason))
	if j.journal != nil && !j.journal.recompute {
		opts = append(opts, runtime.WithCheckpoints(j.journal.checkpoints))
	}
	return opts
}

// isPartial reports whether the rows are only a part of the input.
func (j *job) isPartial() bool { return j.Offset > 0 || j.Limit > 0 || j.in.failedRows.Load() }

// partialReason returns why the run may miss a part of its input.
func (j *job) partialReason() string {
	if j.isPartial() {
		return steps.PartialInput
	}
	return ""
}

// writeResult writes one result. If it does not fit the output, its row has failed.
func (j *job) writeResult(res *runtime.Result, sum *summary) error {
	err := j.results.write(res)
	if unfit, ok := errors.AsType[*outputTypeError](err); ok {
		res.Err, err = &steps.Error{Err: unfit}, nil
	}
	if err != nil {
		return err
	}
	sum.add(res)
	return j.failures.add(res)
}
