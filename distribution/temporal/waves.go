package temporal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// wavePlan is a run that makes its calls of models in batches of their providers. One activity runs all rows: most of the
// time it waits. What was sent and answered is in its journal, from which another worker continues.
type wavePlan struct {
	Chunks      int          // of rows
	Least       int          // see waves.Run
	Finish      batch.Finish // when the rest is done without batches
	MaxFailures int64        // the number of failed rows that ends the run; 0 for any number
	Partial     bool         // the rows are only a part of the input
	Rebuy       bool         // see waves.Run
	Cancel      bool         // the batches that have not ended are canceled, and the run ends
	Earlier     string       // the run that this one replaces, whose batches are canceled first; empty for none
}

// maxLines is how many of the newest lines about batches a heartbeat and an output have.
const maxLines = 50

// waveRun is one attempt to run all rows.
type waveRun struct {
	*chunkRun
	worker *chunkRunner
	plan   *wavePlan
	run    *waves.Run
	app    *runtime.App // whose models make their calls in batches
	flow   *spec.Flow
	failed error // why the rows cannot be read; nil if they can

	mu    sync.Mutex
	shown batch.WaveState // without the status of the batches
}

// runWaves is the activity that runs all rows.
func (w *chunkRunner) runWaves(ctx context.Context, t task) (made done, err error) {
	ctx, cancel := ownContext(ctx)
	defer cancel(nil)
	folder, err := os.MkdirTemp("", "qtype-batches-")
	if err != nil {
		return made, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // the journal has all
	run := waves.New(filepath.Join(folder, "run"+waves.Suffix))
	defer func() { _ = run.Close() }() // likewise
	app, err := w.appFor(ctx, run, t.Flow)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, app.Close(context.WithoutCancel(ctx))) }()
	c := &chunkRun{blobs: w.blobs, task: t, counted: &runtime.Progress{}, ctx: ctx, finished: map[checkpoint.Key]*finishedRow{}, cancel: cancel, drain: w.drain, stopping: w.stopping}
	v := &waveRun{chunkRun: c, worker: w, plan: t.Waves, run: run, app: app}
	if v.flow, err = app.Flow(t.Flow); err != nil {
		return made, err
	}
	run.Least, run.Rebuy, run.Report = t.Waves.Least, t.Waves.Rebuy, v.report
	c.waves, c.calls = v, c.newCallLog(ctx)
	c.calls.journal.segment = newSegment(activity.GetInfo(ctx).StartedTime) // by the clock of Temporal
	defer c.calls.journal.close()
	defer c.beat(ctx, w.beat)()
	if err := v.restore(ctx); err != nil {
		return made, v.explain(ctx, err, false)
	}
	if t.Waves.Cancel {
		n, err := run.Cancel(ctx)
		if err != nil {
			return made, v.explain(ctx, err, true)
		}
		return done{Canceled: &n}, nil
	}
	made, err = v.process(ctx)
	if _, ok := errors.AsType[*movedError](err); ok {
		return done{Moved: &place{}}, nil // it is no failed attempt
	}
	return made, err
}

// appFor returns an application whose models make their calls in the batches of a run.
func (w *chunkRunner) appFor(ctx context.Context, run *waves.Run, flowID string) (*runtime.App, error) {
	app, err := w.inWaves(ctx, run)
	if err != nil {
		return nil, temporal.NewNonRetryableApplicationError(brief(err), failedError, nil)
	}
	flow, err := app.Flow(flowID)
	if err == nil && queueOf(app.Spec(), flow, w.blobs.sealer) != activity.GetInfo(ctx).TaskQueue {
		err = errors.New("the document of a worker was changed after its start: start the worker again") // another one continues
	}
	if err == nil {
		_, err = app.Models(flowID) // which then have clients: also batches of earlier attempts need them
	}
	if err != nil {
		return nil, errors.Join(err, app.Close(ctx))
	}
	return app, nil
}

// restore reads what earlier attempts have done, after a note that another one has begun: they do nothing more.
func (v *waveRun) restore(ctx context.Context) error {
	t := &v.task
	if t.Waves.Earlier != "" {
		if err := v.cancelEarlier(ctx); err != nil {
			return err
		}
	}
	all := &attemptList{blobs: v.blobs, folder: t.folder(), own: v.calls.journal.segment}
	if err := all.begin(ctx); err != nil {
		return err
	}
	if err := v.replay(ctx, all, func(e *entry) { v.restoreEntry(e, false) }); err != nil {
		return err
	}
	if err := all.confirm(ctx); err != nil {
		return err
	}
	v.before = stats{Events: append([]event{}, v.events.all...), HasFailed: v.before.HasFailed} // the last pass counts all rows
	v.run.Log = &waveLog{run: v, journal: v.calls.journal, attempts: all}
	return nil
}

// replay repeats what attempts have done with batches, and calls take with the entries of the journal.
func (v *waveRun) replay(ctx context.Context, all *attemptList, take func(*entry)) error {
	var failed error
	err := all.replay(ctx, func(e *entry) {
		if failed == nil && e.Changes != nil {
			failed = v.run.Replay(e.Changes)
		}
		take(e)
	})
	return errors.Join(err, failed)
}

// cancelEarlier cancels the batches of the run that this one replaces, and forgets that.
func (v *waveRun) cancelEarlier(ctx context.Context) error {
	folder := v.plan.Earlier
	earlier := &attemptList{blobs: v.blobs, folder: folder}
	if err := earlier.find(ctx); err != nil {
		return err
	}
	if err := v.replay(ctx, earlier, func(*entry) {}); err != nil {
		return err
	}
	n, err := v.run.Cancel(ctx)
	if err != nil {
		return temporal.NewNonRetryableApplicationError("the batches of the earlier run could not be canceled: "+brief(err), failedError, nil)
	}
	if n > 0 {
		v.report(textfmt.Count(int64(n), "batch") + " of the earlier run canceled")
	}
	return errors.Join(v.run.Remove(), v.blobs.remove(folder))
}

// process makes passes until all rows are finished, and stores their results.
func (v *waveRun) process(ctx context.Context) (done, error) {
	t := &v.task
	ctx = steps.WithCallLog(ctx, &waveCalls{v.run, v.calls})
	passes := &batch.Passes{
		App: v.app, Flow: v.flow, Waves: v.run, Finish: v.plan.Finish, MaxFailures: v.plan.MaxFailures, Spent: spentOf(v.before.Events),
		Begin: v.beginPass, Event: v.eventOfPass, Done: v.pass,
	}
	if b := t.Budget; b != nil {
		passes.Budget = &spec.Budget{Tokens: b.Tokens, Calls: b.Calls, Seconds: b.Seconds, Money: b.Money}
	}
	if err := passes.Run(ctx); err != nil {
		return done{}, v.explain(ctx, err, true)
	}
	codec, err := v.app.NewRowCodec(t.Flow)
	if err != nil {
		return done{}, v.explain(ctx, err, true)
	}
	results := &partWriter{blobs: v.blobs, codec: codec, folder: fmt.Sprintf("%s/out/%d/%s", t.folder(), t.Partition, v.calls.journal.segment)}
	out := &output{Folder: results.folder}
	if out.Stats, err = v.write(ctx, results); err != nil {
		return done{}, err
	}
	out.Parts = results.parts
	state, err := v.state(ctx)
	if err != nil {
		return done{}, err
	}
	out.Waves = state
	return v.worker.finish(ctx, *t, out, false)
}

// write stores the results of all rows, which are finished: the last pass makes none of their calls.
func (v *waveRun) write(ctx context.Context, results *partWriter) (counted stats, err error) {
	v.begin(-1)
	opts, err := v.options(v.worker)
	if err != nil {
		return counted, err
	}
	opts = append(opts, v.storeOptions()...)
	var check batch.OutageCheck
	ctx = waves.WithPass(ctx, v.run.NewPass(true))
	for res, err := range v.app.Run(ctx, v.task.Flow, v.untilStopped(ctx, v.rows(ctx)), opts...) {
		if err == nil {
			if err = v.failed; err == nil {
				err = results.add(ctx, res)
			}
			if err != nil {
				v.fail(err)
			}
		}
		if err == nil {
			err = check.Add(res)
		}
		if err != nil {
			return counted, v.explain(ctx, err, true)
		}
		counted.Rows++
		if res.Err != nil {
			counted.Failed++
		}
	}
	if v.isCut || ctx.Err() != nil {
		return counted, v.explain(ctx, ctx.Err(), true)
	}
	if err := errors.Join(v.failed, results.flush(ctx)); err != nil {
		return counted, err
	}
	all := v.stats()
	counted.Steps, counted.Events, counted.HasFailed = all.Steps, all.Events, all.HasFailed
	return counted, nil
}

// rows yields all rows of the run.
func (v *waveRun) rows(ctx context.Context) iter.Seq[runtime.Input] {
	v.failed = nil
	return func(yield func(runtime.Input) bool) {
		for n := range v.plan.Chunks {
			rows := &chunk{}
			if v.failed = v.worker.rows(ctx, task{Run: v.task.Run, Number: n}, rows); v.failed != nil {
				return
			}
			for _, row := range rows.Rows {
				if !yield(runtime.EncodedInput(row)) {
					return
				}
			}
		}
	}
}

// storeOptions lets a run find and store finished rows.
func (v *waveRun) storeOptions() []runtime.RunOption {
	return []runtime.RunOption{runtime.WithRowStore(v.chunkRun, v.task.Flow, v.task.folder()), runtime.WithPartialInput(func() string {
		if v.plan.Partial {
			return steps.PartialInput
		}
		return ""
	})}
}

// beginPass begins a pass over the rows.
func (v *waveRun) beginPass(ctx context.Context, segment int) (*batch.Pass, error) {
	v.begin(segment)
	return &batch.Pass{Context: ctx, Rows: v.untilStopped(ctx, v.rows(ctx)), Options: v.storeOptions(), ReadError: func() error { return v.failed }, Close: func() {}, End: func() error {
		v.chunkRun.mu.Lock()
		defer v.chunkRun.mu.Unlock()
		v.flush()
		return v.err
	}}, nil
}

// begin begins a segment of the flow; -1 is the last pass.
func (v *waveRun) begin(segment int) {
	v.chunkRun.mu.Lock()
	defer v.chunkRun.mu.Unlock()
	v.segment = segment
}

// eventOfPass counts an event that the summary of a run on workers has.
func (v *waveRun) eventOfPass(ev steps.Event) {
	switch ev.Kind {
	case steps.EventUsage:
		v.mu.Lock()
		v.shown.Cost, v.shown.Saved = v.shown.Cost+ev.Cost, v.shown.Saved+ev.Saved
		v.mu.Unlock()
	case steps.EventTurn, steps.EventFallback:
	case steps.EventToolCall:
		if v.task.Budget == nil {
			return
		}
	default:
		return
	}
	v.event(ev)
}

// pass notes the rows after a pass.
func (v *waveRun) pass(done, left int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown.Done, v.shown.Left = done, left
}

// report notes a line about batches.
func (v *waveRun) report(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shown.Lines = append(v.shown.Lines, line)
	if more := len(v.shown.Lines) - maxLines; more > 0 {
		v.shown.Lines, v.shown.First = v.shown.Lines[more:], v.shown.First+more
	}
}

// maxOpen is how many open batches a heartbeat has.
const maxOpen = 100

// state returns how far the run is.
func (v *waveRun) state(ctx context.Context) (*batch.WaveState, error) {
	status, err := v.run.Status(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := v.run.Totals(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.shown
	s.Status, s.Counts, s.Lines = status, counts, append([]string{}, s.Lines...)
	s.Open = s.Open[:min(len(s.Open), maxOpen)]
	return &s, nil
}

// explain returns the error of the activity, with the state of the batches. isFinal is whether an error of the run, which no
// other worker would not have, ends it.
func (v *waveRun) explain(ctx context.Context, err error, isFinal bool) error {
	if !isFinal && ctx.Err() == nil {
		return err
	}
	text := err
	if _, lost := errors.AsType[*waves.LostError](err); lost {
		text = fmt.Errorf("%w: if the keys and the base_url of the models are right, --resume --rebuy makes the calls again, at the price of new ones", err)
	}
	explained := v.chunkRun.explain(ctx, text)
	state, failed := v.state(context.WithoutCancel(ctx))
	if failed != nil {
		return explained
	}
	failure, ended := errors.AsType[*temporal.ApplicationError](explained)
	switch {
	case ended && failure.NonRetryable():
		return temporal.NewNonRetryableApplicationError(failure.Message(), failure.Type(), nil, place{Waves: state})
	case temporal.IsCanceledError(explained) || errors.Is(explained, context.Canceled):
		return temporal.NewCanceledError(place{Waves: state})
	}
	return explained
}

// waveCalls has the results of calls in the journal, and lets none begin when the worker stops. It is a steps.CallGate.
type waveCalls struct {
	*waves.Run
	gate *callLog
}

// Begin returns when the call may be made.
func (w *waveCalls) Begin(ctx context.Context, key string) (end func(), before int, err error) {
	if err := w.gate.enter(ctx, key); err != nil {
		return nil, 0, err
	}
	return func() { w.gate.remove(key) }, 0, nil
}

// Repeats is 0: calls of batches are not made by attempts.
func (w *waveCalls) Repeats(string) int { return 0 }

// waveLog stores the changes of a waves.Run in the journal. It is a waves.Log.
type waveLog struct {
	run      *waveRun
	journal  *journal
	attempts *attemptList
}

// Add adds changes.
func (l *waveLog) Add(changes []waves.Change) error {
	err := l.journal.add(entry{Changes: changes})
	if err != nil {
		l.run.fail(err)
	}
	return err
}

// Sync returns when the changes are stored, and no other attempt has begun.
func (l *waveLog) Sync() error {
	err := l.journal.sync()
	if err == nil {
		err = l.attempts.check(l.journal.ctx)
	}
	switch {
	case errors.Is(err, errLost):
		l.run.cancel(errLost)
	case err != nil:
		l.run.fail(err)
	}
	return err
}
