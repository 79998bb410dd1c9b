package temporal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// chunkRunner runs chunks. It is safe for concurrent use.
type chunkRunner struct {
	app   *runtime.App
	blobs *blobs
	beat  func(ctx context.Context, token []byte, details ...any) error // sends a heartbeat and waits for the answer

	isCanceled func(context.Context, workflow.Execution) bool // reports whether somebody has canceled a run

	approved []string                                                // ids of tools that need no further approval
	answered []string                                                // ids of client tools that have a handler
	drain    time.Duration                                           // how long calls may last when the worker stops
	queue    string                                                  // of activities for this worker
	slots    map[string]slots                                        // by flow; a workflow task begins no chunk of a flow without
	stopping <-chan struct{}                                         // is closed when the worker stops
	inWaves  func(context.Context, *waves.Run) (*runtime.App, error) // see durable.WorkerConfig
	ongoing  sync.WaitGroup                                          // chunks that workflow tasks have begun

	mu    sync.Mutex
	begun map[string]*begun // chunks that become activities, by task.chunkKey
}

// run is the activity: it runs the rows of a chunk.
func (w *chunkRunner) run(ctx context.Context, t task) (done, error) {
	if strings.ContainsAny(t.Run, "./\\") { // it is part of the names of blobs
		return done{}, temporal.NewNonRetryableApplicationError("the id of the run is not valid", failedError, nil)
	}
	if t.Begun {
		return w.attach(ctx, t)
	}
	if t.mayHaveBegun(ctx) {
		if finished, err := w.finished(ctx, t); finished != nil || err != nil {
			return deref(finished), err
		}
	}
	if err := w.readAnswers(ctx, &t); err != nil {
		return done{}, err
	}
	switch {
	case t.Waves != nil:
		return w.runWaves(ctx, t)
	case t.Tail != nil:
		return w.runTail(ctx, t)
	}
	rows := &chunk{}
	if err := w.rows(ctx, t, rows); err != nil {
		return done{}, err
	}
	succeeded, err := w.succeeded(ctx, t, rows)
	if err != nil {
		return done{}, err
	}
	codec, err := w.codec(t)
	if err != nil {
		return done{}, err
	}
	out := &output{}
	out.Stats, err = w.process(ctx, t, isLocal(ctx), rows.inputs(), func(res *runtime.Result) error {
		out.Results = append(out.Results, codec.AppendResult(nil, res))
		return nil
	})
	if waits, ok := errors.AsType[*waitingError](err); ok {
		return done{Waiting: waits.requests}, nil
	}
	if _, ok := errors.AsType[*movedError](err); ok {
		return done{Moved: &place{}}, nil // it is no failed attempt
	}
	if err != nil {
		return done{}, err
	}
	if err := succeeded.addTo(out); err != nil {
		return done{}, err
	}
	return w.finish(ctx, t, out, isLocal(ctx))
}

// deref returns the value of a pointer, the zero value for nil.
func deref(d *done) done {
	if d == nil {
		return done{}
	}
	return *d
}

// finished returns the result of an earlier attempt that has stored its output; nil if
// there is none.
func (w *chunkRunner) finished(ctx context.Context, t task) (*done, error) {
	out := &output{}
	err := w.blobs.read(ctx, outputName(t.folder(), t.Partition, t.Number), out)
	if errors.Is(err, fs.ErrNotExist) || err != nil && activity.GetInfo(ctx).IsLocalActivity { // it may be damaged; see blobs.store
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return doneOf(&out.Stats), nil
}

// doneOf returns what the workflow gets of the counts of a chunk.
func doneOf(s *stats) *done {
	return &done{
		Rows: s.Rows, Failed: s.Failed, Steps: s.Steps, HasFailed: s.HasFailed, Repeated: repeatedOf(s.Events),
		Outages: s.Outages, Outage: s.Outage,
	}
}

// rows reads the rows of the chunk.
func (w *chunkRunner) rows(ctx context.Context, t task, rows *chunk) error {
	if t.Rows != nil {
		return decode(t.Rows, rows)
	}
	err := w.blobs.read(ctx, inputName(t.Run, t.Partition, t.Number), rows)
	if errors.Is(err, fs.ErrNotExist) {
		return temporal.NewNonRetryableApplicationError("a worker does not find the rows of the run: "+err.Error()+
			"; the run and all workers need the same --blobs, which all of them can reach", failedError, nil)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // see blobs.store
		return temporal.NewNonRetryableApplicationError("the rows of the run are damaged: "+err.Error()+"; --restart starts over", failedError, nil)
	}
	return err
}

// finish stores the output, or returns a small one of small rows.
func (w *chunkRunner) finish(ctx context.Context, t task, out *output, isLocal bool) (done, error) {
	made := *doneOf(&out.Stats)
	if t.Max > 0 {
		data, err := encode(out)
		if err != nil {
			return done{}, err
		}
		if len(data) <= t.Max {
			made.Output = data
			return made, nil
		}
	}
	if err := w.blobs.store(ctx, outputName(t.folder(), t.Partition, t.Number), out, isLocal); err != nil || isLocal {
		return made, err
	}
	return made, w.blobs.remove(callsName(t.folder(), t.Partition, t.Number)) // a repeated chunk takes the output
}

// ownContext returns the context of a chunk. It ends with that of the activity, because of errLost
// if Temporal did not ask for it: then it has given the chunk to another worker.
func ownContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if !temporal.IsCanceledError(cause) && !errors.Is(cause, ctx.Err()) {
			cause = errLost
		}
		cancel(cause)
	})
	return own, func(cause error) {
		stop()
		cancel(cause)
	}
}

// codec returns the codec of the results of a task.
func (w *chunkRunner) codec(t task) (*runtime.RowCodec, error) {
	codec, err := w.app.NewRowCodec(t.Flow)
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), failedError, nil)
	}
	if t.Head {
		codec = codec.Head()
	}
	return codec, nil
}

// inputs returns the rows as inputs of a run.
func (c *chunk) inputs() inputs {
	return func(*chunkRun) iter.Seq[runtime.Input] {
		return func(yield func(runtime.Input) bool) {
			for _, row := range c.Rows {
				if !yield(runtime.EncodedInput(row)) {
					return
				}
			}
		}
	}
}

// inputs returns the inputs of an attempt, which they end by chunkRun.fail if they cannot be read.
type inputs func(*chunkRun) iter.Seq[runtime.Input]

// options returns the options of every run of the chunk.
func (c *chunkRun) options(w *chunkRunner) ([]runtime.RunOption, error) {
	t := c.task
	kinds := []steps.EventKind{steps.EventUsage, steps.EventTurn, steps.EventFallback, steps.EventRepeated}
	if t.Budget != nil {
		kinds = append(kinds, steps.EventToolCall)
	}
	opts := []runtime.RunOption{
		runtime.WithProgress(c.counted), runtime.WithStepTimes(), runtime.WithOutage(t.Outage), runtime.WithRunID(t.folder()), // a committed turn may be why a row has failed
		runtime.WithEvents(c.event, kinds...),
	}
	switch {
	case t.Head:
		opts = append(opts, runtime.WithHead())
	case t.Tail != nil:
		opts = append(opts, runtime.WithTail(), runtime.WithPartialInput(c.partialReason))
		codec, err := w.codec(t)
		if err != nil {
			return nil, err
		}
		c.batches = codec.BatchSteps()
	}
	return opts, nil
}

// process runs the rows that an earlier attempt has not finished, and calls take with the results. It returns what the run has
// counted.
func (w *chunkRunner) process(ctx context.Context, t task, isLocal bool, in inputs, take func(*runtime.Result) error) (counted stats, err error) {
	ctx, cancel := ownContext(ctx)
	defer cancel(nil)
	c := &chunkRun{blobs: w.blobs, task: t, counted: &runtime.Progress{}, finished: map[checkpoint.Key]*finishedRow{}, cancel: cancel, drain: w.drain, stopping: w.stopping}
	served, err := w.served(ctx, c)
	if err != nil {
		return counted, err
	}
	opts, err := c.options(w)
	if err != nil {
		return counted, err
	}
	if !isLocal {
		if err := c.restore(ctx); err != nil {
			return counted, err
		}
		defer c.calls.journal.close()
		opts = append(opts, runtime.WithRowStore(c, t.Flow, t.folder()))
		defer c.beat(ctx, w.beat)()
		ctx = steps.WithCallLog(ctx, c.calls)
		if t.MayWait {
			c.asker = &asker{worker: w, answers: t.Answers, suspend: cancel, publish: served.requests()}
			ctx = tool.WithHandlers(ctx, c.asker.handlers())
		}
	}
	if served != nil {
		defer func() { _ = served.close() }() // an error has ended the chunk
		// Turns of a session come from several requests, on several workers.
		ctx = memory.WithLease(ctx, t.folder(), func() { cancel(errLost) })
		ctx = served.start.Context(ctx, c.asker.askClient)
		opts = append(opts, served.options()...)
	}
	if t.Budget != nil {
		opts = append(opts, c.sharedBudget(w.app.State()))
	}
	var check batch.OutageCheck
	for res, err := range c.run(ctx, w, c.untilStopped(ctx, in(c)), opts) {
		if err == nil {
			if err = take(res); err != nil {
				c.fail(err)
			}
		}
		if err != nil {
			return counted, c.explain(ctx, err)
		}
		counted.Rows++
		if res.Err != nil {
			counted.Failed++
		}
		if err := check.Add(res); err != nil {
			return counted, temporal.NewNonRetryableApplicationError(brief(err), outageError, nil)
		}
		if t.Tail.isStopped(counted) {
			c.mu.Lock()
			c.flush() // the run continues after them
			c.mu.Unlock()
			break
		}
	}
	if c.isCut {
		return counted, c.explain(ctx, ctx.Err())
	}
	if err := served.close(); err != nil {
		return counted, err
	}
	if rows, cause := check.Last(); rows > 0 {
		counted.Outages, counted.Outage = rows, brief(cause)
	}
	counts := c.stats()
	counted.Steps, counted.Events, counted.HasFailed = counts.Steps, counts.Events, counts.HasFailed
	return counted, nil
}
