//go:build temporal

package durable

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// chunkRunner runs chunks. It is safe for concurrent use.
type chunkRunner struct {
	app      *runtime.App
	blobs    *blobs
	beat     func(ctx context.Context, token []byte, details ...any) error // sends a heartbeat and waits for the answer
	approved []string                                                      // ids of tools that need no further approval
	answered []string                                                      // ids of client tools that have a handler
}

// run is the activity: it runs the rows of a chunk.
func (w *chunkRunner) run(ctx context.Context, t task) (done, error) {
	if strings.ContainsAny(t.Run, "./\\") { // it is part of the names of blobs
		return done{}, temporal.NewNonRetryableApplicationError("the id of the run is not valid", failedError, nil)
	}
	info := activity.GetInfo(ctx)
	if info.Attempt > 1 || t.Resumed || t.Answers != nil {
		if finished, err := w.finished(ctx, t); finished != nil || err != nil {
			return deref(finished), err
		}
	}
	rows := &chunk{}
	if err := w.rows(ctx, t, rows); err != nil {
		return done{}, err
	}
	succeeded, err := w.succeeded(ctx, t, rows)
	if err != nil {
		return done{}, err
	}
	out, err := w.process(ctx, t, rows, info.IsLocalActivity)
	if waits, ok := errors.AsType[*waitingError](err); ok {
		return done{Waiting: waits.requests}, nil
	}
	if err != nil {
		return done{}, err
	}
	if err := succeeded.addTo(out); err != nil {
		return done{}, err
	}
	return w.finish(ctx, t, out, info.IsLocalActivity)
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
	return &done{Rows: out.Stats.Rows, Failed: out.Stats.Failed, Steps: out.Stats.Steps}, nil
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
	made := done{Rows: out.Stats.Rows, Failed: out.Stats.Failed, Steps: out.Stats.Steps}
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

// process runs the rows that an earlier attempt has not finished.
func (w *chunkRunner) process(ctx context.Context, t task, rows *chunk, isLocal bool) (*output, error) {
	codec, err := w.app.NewRowCodec(t.Flow)
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), failedError, nil)
	}
	ctx, cancel := ownContext(ctx)
	defer cancel(nil)
	c := &chunkRun{blobs: w.blobs, task: t, counted: &runtime.Progress{}, finished: map[int64]*finishedRow{}, cancel: cancel}
	served, err := w.served(ctx, c)
	if err != nil {
		return nil, err
	}
	kinds := []steps.EventKind{steps.EventUsage, steps.EventTurn, steps.EventFallback}
	if t.Budget != nil {
		kinds = append(kinds, steps.EventToolCall)
	}
	opts := []runtime.RunOption{
		runtime.WithProgress(c.counted), runtime.WithStepTimes(), runtime.WithRunID(t.folder()), // a committed turn may be why a row has failed
		runtime.WithEvents(c.event, kinds...),
	}
	if !isLocal {
		if err := c.restore(ctx); err != nil {
			return nil, err
		}
		opts = append(opts, runtime.WithRowStore(c, t.Flow, t.folder()))
		defer c.beat(ctx, w.beat)()
		ctx = steps.WithCallLog(ctx, c.calls(ctx))
		if t.MayWait {
			c.asker = &asker{worker: w, answers: t.Answers, suspend: cancel, limit: requestLimit(t.Request != nil), publish: served.requests()}
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
		opts = append(opts, c.sharedBudget(w.app.StateStore()))
	}
	out := &output{}
	input := func(yield func(runtime.Input) bool) {
		for _, row := range rows.Rows {
			if !yield(runtime.EncodedInput(row)) {
				return
			}
		}
	}
	check := batch.OutageCheck()
	for res, err := range w.app.Run(ctx, t.Flow, input, opts...) {
		if err != nil {
			return nil, c.explain(ctx, err)
		}
		out.Results = append(out.Results, codec.AppendResult(nil, res))
		out.Stats.Rows++
		if res.Err != nil {
			out.Stats.Failed++
		}
		if err := check(res); err != nil {
			return nil, temporal.NewNonRetryableApplicationError(err.Error(), outageError, nil)
		}
	}
	if err := served.close(); err != nil {
		return nil, err
	}
	counts := c.stats()
	out.Stats.Steps, out.Stats.Events = counts.Steps, counts.Events
	return out, nil
}
