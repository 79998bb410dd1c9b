package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

const (
	progressPause = time.Second      // between two queries of the progress
	cancelTimeout = 20 * time.Second // for a workflow that was canceled
)

// errStoppedReading ends the reading of results.
var errStoppedReading = errors.New("no more results are wanted")

// engineRun is the batch.EngineRun.
type engineRun struct {
	cfg       durable.Config
	batch     *batch.Config
	client    client.Client
	codec     *runtime.RowCodec
	app       *runtime.App
	flow      *spec.Flow
	header    checkpoint.Header
	blobs     *blobs
	workflow  string // its id
	lane      *lane  // the workflow, if it is that of a turn; nil for a workflow of the run
	begun     func() // of a request: another one may start; nil for a run of a file
	queue     string
	plan      *plan // nil before the rows are stored
	isRunning bool  // the workflow was started earlier, and runs or is complete
	started   bool
	sessions  []string // see owners
	users     []string
	replaced  string // the id of an earlier run that this one replaces; empty for none
	earlier   string // likewise, whose batches are canceled first

	isOver bool  // the workflow has ended
	shown  int   // batches that have not ended, as of the last look
	last   state // then
	ended  error // then, if failed rows have stopped it
}

// ID returns the id of the run.
func (r *engineRun) ID() string { return r.header.Run }

// Advice returns where the run is.
func (r *engineRun) Advice() string {
	if r.batch.Output == "" || r.batch.InputFile == "" || !r.started {
		return ""
	}
	if r.batch.Waves != nil {
		return r.wavesAdvice()
	}
	return "finished rows are in workflow " + r.workflow
}

// Close closes the connection, and deletes the blobs of a run that is complete.
func (r *engineRun) Close(done bool) error {
	var err error
	if done {
		err = r.blobs.remove(r.header.Run)
	}
	r.client.Close()
	return errors.Join(err, r.blobs.client.Close())
}

// Run stores the rows, lets the workflow run them, and yields the results.
func (r *engineRun) Run(ctx context.Context, job batch.EngineJob) iter.Seq2[*runtime.Result, error] {
	return func(yield func(*runtime.Result, error) bool) {
		err := r.run(ctx, job, func(res *runtime.Result) bool { return yield(res, nil) })
		if err != nil && !errors.Is(err, errStoppedReading) {
			yield(nil, err)
		}
	}
}

func (r *engineRun) run(ctx context.Context, job batch.EngineJob, yield func(*runtime.Result) bool) (err error) {
	ctx, end := steps.Observe(ctx, &steps.Operation{Kind: steps.OperationFlow, ID: r.flow.ID, Flow: r.flow}) // workers continue its trace
	counted := &steps.OperationResult{}
	defer func() {
		if !errors.Is(err, errStoppedReading) {
			counted.Err = err
		}
		end(counted)
	}()
	if !r.isOver {
		if err := r.wait(ctx, job); err != nil {
			return err
		}
	}
	if r.plan == nil {
		return nil
	}
	s, err := r.last, r.ended
	read := s.Rows
	if r.plan.Tail {
		read = r.plan.Total
	}
	job.Progress.Set(read, s.Rows, s.Failed, progressOf(s.Steps))
	counted.Read, counted.Done, counted.Failed = read, s.Rows, s.Failed
	wanted := true
	reading := r.results(ctx, s, job, func(res *runtime.Result) bool {
		wanted = yield(res)
		return wanted
	})
	switch {
	case reading != nil:
		return reading
	case !wanted:
		return errStoppedReading
	case err != nil:
		return explain(err)
	}
	return nil
}

// wait stores the rows, and lets the workflow run them until it ends.
func (r *engineRun) wait(ctx context.Context, job batch.EngineJob) error {
	if r.plan == nil || r.batch.ErrorFile != "" {
		if err := r.prepare(ctx, job); err != nil || r.plan == nil {
			r.isOver = true
			return err
		}
	}
	if !r.isRunning {
		if err := r.start(ctx); err != nil {
			return err
		}
		if r.replaced != "" {
			if err := r.blobs.remove(r.replaced); err != nil {
				return err
			}
		}
	}
	r.started = true
	r.hint(ctx)
	if r.batch.Detach {
		if isOpen, err := r.isOpen(ctx); err != nil || isOpen {
			return cmp.Or(err, waves.ErrDetached)
		}
	}
	s, err := r.await(ctx, job)
	failure, stopped := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case stopped && failure.Type() == stoppedError:
		s, _ = stateOf(err)
	case r.plan.Waves != nil && r.plan.Waves.Cancel:
		return r.canceled(err, job)
	default:
		return explain(err)
	}
	r.last, r.ended, r.isOver = s, err, true
	return nil
}

// results yields the results of a workflow that has ended with a state.
func (r *engineRun) results(ctx context.Context, s state, job batch.EngineJob, yield func(*runtime.Result) bool) error {
	d := &downloader{codec: r.codec, blobs: r.blobs, run: r.plan.folder(), state: s, count: func(ev event) { job.Event(ev.event()) }, waves: job.Waves}
	if !r.plan.Tail {
		return d.results(ctx, r.plan.Partitions, yield)
	}
	last := len(r.plan.Partitions) - 1
	switch {
	case s.Stopped != "":
		return d.stopped(ctx, s.Stopped, yield)
	case s.Next[last] == 1:
		d.from = last // it has the rows of all chunks
		return d.results(ctx, r.plan.Partitions, yield)
	}
	d.codec = d.codec.Head()
	return d.results(ctx, r.plan.Partitions[:last], func(res *runtime.Result) bool { return res.Err == nil || yield(res) })
}

// prepare reads the rows and stores them, unless an earlier run has. The plan stays nil if
// the rows could not be read to the end.
func (r *engineRun) prepare(ctx context.Context, job batch.EngineJob) error {
	if r.plan != nil { // only the file of failed rows needs them
		for range job.Rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	}
	if r.batch.Waves != nil {
		return r.prepareWaves(ctx, job)
	}
	waits := mayWait(r.flow)
	u := newUploader(r.codec, r.blobs, r.header.Run, r.cfg.Chunk, waits)
	u.isVolatile = r.flow.Plan().IsComputation()
	partitions, inline, err := u.upload(ctx, job.Rows)
	if err != nil || job.ReadError() != nil {
		return errors.Join(err, r.blobs.remove(r.header.Run))
	}
	r.sessions, r.users = u.owners.lists(r.cfg)
	r.plan = &plan{
		Run: r.header.Run, App: r.app.Spec().ID, Flow: r.flow.ID, Partitions: partitions, Inline: inline, Local: r.flow.Plan().IsComputation(), MayWait: waits,
		MaxFailures: r.batch.MaxFailures, Heartbeat: r.cfg.Heartbeat, Outage: r.batch.Outage, HistoryLimit: historyLimit, Budget: newBudget(r.flow),
	}
	if r.codec.HasBatches() {
		r.plan.Tail, r.plan.Total, r.plan.Partial = true, u.total, job.IsPartial()
		r.plan.Partitions = append(r.plan.Partitions, 1)
		return nil
	}
	if inline != nil {
		chunks := 0
		for _, n := range partitions {
			chunks += n
		}
		r.plan.MaxOutput = min(maxInline, maxOutputs/max(chunks, 1))
	}
	return nil
}

// await waits for the end of the workflow. If ctx ends, it cancels the workflow.
func (r *engineRun) await(ctx context.Context, job batch.EngineJob) (s state, err error) {
	watch, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		if r.plan.Waves != nil {
			r.watchWaves(watch, job)
			return
		}
		r.watch(watch, job.Progress)
	})
	err = r.client.GetWorkflow(ctx, r.workflow, "").Get(ctx, &s)
	if ctx.Err() == nil {
		return s, err
	}
	last, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer end()
	if err := r.client.CancelWorkflow(last, r.workflow, ""); err != nil {
		return s, err
	}
	return s, r.client.GetWorkflow(last, r.workflow, "").Get(last, &s)
}

// mayWait reports whether rows of a flow may need an approval or a client tool.
func mayWait(f *spec.Flow) bool {
	for s := range f.Plan().All() {
		isClient := func(t spec.Tool) bool { _, ok := t.(*spec.ClientTool); return ok }
		if s.NeedsApproval() || slices.ContainsFunc(s.Tools(), isClient) {
			return true
		}
	}
	return false
}

// watch updates the progress.
func (r *engineRun) watch(ctx context.Context, shown *runtime.Progress) {
	waiting := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressPause):
		}
		var s status
		answer, err := r.client.QueryWorkflow(ctx, r.workflow, "", progressQuery)
		if err != nil || answer.Get(&s) != nil || ctx.Err() != nil {
			continue
		}
		shown.Set(s.Rows, s.Rows, s.Failed, progressOf(addSteps(s.Steps, r.tailSteps(ctx))))
		if s.Waiting > 0 && waiting == 0 && !r.batch.Quiet {
			fmt.Fprintf(r.batch.Streams.Err, "rows wait for answers: qtype runs show %s\n", r.workflow)
		}
		waiting = s.Waiting
	}
}

// tailSteps returns what the last steps of a flow with batch steps have done, if they run; nil if they do not.
func (r *engineRun) tailSteps(ctx context.Context) []stepStats {
	if !r.plan.Tail {
		return nil
	}
	known, err := r.client.DescribeWorkflowExecution(ctx, r.workflow, "")
	if err != nil {
		return nil
	}
	for _, running := range known.GetPendingActivities() {
		var at place
		if dataConverter(r.cfg).FromPayloads(running.GetHeartbeatDetails(), &at) == nil && at.Steps != nil {
			return at.Steps
		}
	}
	return nil
}

// hint prints a note if there is no worker.
func (r *engineRun) hint(ctx context.Context) {
	if r.batch.Quiet || !isUnserved(ctx, r.client, r.queue) {
		return
	}
	fmt.Fprintf(r.batch.Streams.Err, "no worker has this document: start one with qtype worker (task queue %s)\n", r.queue)
}

// explain returns the error of a workflow as a user understands it.
func explain(err error) error {
	var canceled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch failure, ok := errors.AsType[*temporal.ApplicationError](err); {
	case ok:
		return errors.New(failure.Message())
	case errors.As(err, &canceled):
		return errors.New("the workflow was canceled")
	case errors.As(err, &terminated):
		return errors.New("the workflow was terminated")
	}
	return err
}

// stateOf returns what a workflow that ended with the error has finished.
func stateOf(err error) (s state, ok bool) {
	var canceled *temporal.CanceledError
	switch failure, isFailure := errors.AsType[*temporal.ApplicationError](err); {
	case isFailure && failure.HasDetails():
		return s, failure.Details(&s) == nil
	case errors.As(err, &canceled) && canceled.HasDetails():
		return s, canceled.Details(&s) == nil
	}
	return s, false
}
