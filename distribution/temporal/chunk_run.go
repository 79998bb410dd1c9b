package temporal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// storePause is the shortest time between two entries of finished rows in the journal, unless they have many turns.
const storePause = 100 * time.Millisecond

// A chunk reports every maxBeat, or oftener if its worker may be silent for less than beatsLost
// of these times. A report that fails is repeated after a share of that time.
const (
	maxBeat    = 5 * time.Second
	beatsLost  = 2
	beatShares = 10
)

// The reasons to end a chunk that another worker continues.
var (
	errStopping = repeatError{errors.New("the worker stops; another one continues")}
	errLost     = repeatError{errors.New("no answer from Temporal for the time of a heartbeat; another worker continues")}
)

// repeatError is the reason to end a chunk that is repeated. It matches memory.ErrSuspended, so
// that turns that it interrupts leave nothing in their histories.
type repeatError struct{ error }

// Is reports whether target is memory.ErrSuspended.
func (repeatError) Is(target error) bool { return target == memory.ErrSuspended }

// Unwrap returns the reason.
func (e repeatError) Unwrap() error { return e.error }

// movedError ends a chunk that another worker continues, because this one is stopped.
type movedError struct{}

// Error returns the reason.
func (e *movedError) Error() string { return errStopping.Error() }

// waitingError ends a chunk that waits for answers.
type waitingError struct{ requests []keyedRequest }

// Error returns how many answers are missing.
func (e *waitingError) Error() string { return fmt.Sprintf("%d answers are missing", len(e.requests)) }

// chunkRun is one attempt to run a chunk. It is the checkpoint.Store of the run.
type chunkRun struct {
	blobs    *blobs
	task     task
	counted  *runtime.Progress
	ctx      context.Context // of the activity; nil for a local one, which stores nothing
	beats    context.Context // of the activity that reports; nil before a chunk that was begun is one
	cancel   context.CancelCauseFunc
	asker    *asker          // nil if no row may wait
	calls    *callLog        // nil for a local activity
	drain    time.Duration   // how long calls may last when the worker stops
	stopping <-chan struct{} // is closed when the worker stops
	isCut    bool            // rows were left out, because the worker stops

	mu         sync.Mutex
	finished   map[checkpoint.Key]*finishedRow // by earlier attempts
	pending    map[checkpoint.Key]*finishedRow // rows of which further results follow
	unstored   []finishedRow                   // that the journal does not have
	saved      map[int64]bool                  // rows that this attempt has finished; nil for the last steps of a flow
	before     stats                           // of earlier attempts
	hasDropped bool                            // a step has dropped rows before failed ones run again
	events     eventSums                       // of finished rows, and those of no row
	rowless    eventSums                       // those of no row that the journal does not have
	open       map[int64]*eventSums            // of rows that are not finished, by their numbers
	stored     time.Time                       // when rows were stored last
	turns      int                             // of memories, since then
	err        error                           // why they cannot be stored
	alone      int                             // the number of the row that runs alone; 0 for none
	lethal     int                             // the number of the row that ended its worker when it ran alone; 0 for none
	isRepeated bool                            // the attempt has failed: the last heartbeat is for the next one
	batches    []string                        // the ids of the batch steps among the last steps, which work again in each attempt
	waves      *waveRun                        // runs all rows, in passes; nil for a chunk
	segment    int                             // of the flow, of a pass
}

// restore reads what earlier attempts have stored, and what was made before failed rows run again.
func (c *chunkRun) restore(ctx context.Context) error {
	c.ctx, c.calls = ctx, c.newCallLog(ctx)
	if activity.HasHeartbeatDetails(ctx) {
		var at place
		if err := activity.GetHeartbeatDetails(ctx, &at); err != nil {
			return err
		}
		c.lethal = at.Alone
	}
	for n := range c.task.Retry {
		if err := c.restoreFrom(ctx, folderOf(c.task.Run, n)); err != nil {
			return err
		}
	}
	if c.task.mayHaveBegun(ctx) {
		if err := c.restoreFrom(ctx, c.task.folder()); err != nil {
			return err
		}
	}
	c.before.Events = slices.Clone(c.events.all)
	return nil
}

// restoreFrom reads what is in a folder: without the failed rows, and the calls, if it is of a run whose failed rows run again.
func (c *chunkRun) restoreFrom(ctx context.Context, folder string) error {
	return c.blobs.readJournals(ctx, callsName(folder, c.task.Partition, c.task.Number), func(e *entry) {
		c.restoreEntry(e, folder != c.task.folder())
	})
}

// restoreEntry takes an entry of an earlier attempt, or of a run whose failed rows run again.
func (c *chunkRun) restoreEntry(e *entry, isEarlier bool) {
	if e.Key != "" {
		if !isEarlier {
			c.calls.restore(e)
		}
		return
	}
	for _, row := range e.Rows {
		if c.finished[row.Key] != nil { // by an attempt that was taken for lost
			continue
		}
		c.events.addAll(row.Events)
		if !isEarlier || !row.Failed {
			c.finished[row.Key] = &row
		}
		c.hasDropped = c.hasDropped || isEarlier && len(row.Results) == 0
	}
	c.events.addAll(e.Stats.Events)
	c.before.Steps = withoutSteps(e.Stats.Steps, c.batches)
	if e.Stats.HasFailed && (!isEarlier || c.hasDropped) { // rows that a step dropped do not run again
		c.before.HasFailed = true
	}
}

// Save adds results of a row; see checkpoint.Store.
func (c *chunkRun) Save(key checkpoint.Key, rows []checkpoint.Row, last bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.pending[key]
	if row == nil {
		row = &finishedRow{Key: key}
	}
	for _, r := range rows {
		row.Failed = row.Failed || r.Failed
		row.Results = append(row.Results, append([]byte{}, r.Data...))
	}
	if !last {
		if c.pending == nil {
			c.pending = map[checkpoint.Key]*finishedRow{}
		}
		c.pending[key] = row
		return c.err
	}
	delete(c.pending, key)
	row.Events = c.close(key.Row)
	c.unstored = append(c.unstored, *row)
	if c.waves != nil { // for the next pass
		c.finished[key] = row
	}
	if c.task.Tail == nil {
		if c.saved == nil {
			c.saved = map[int64]bool{}
		}
		c.saved[key.Row] = true
	}
	// Of a row that is not stored, another attempt knows by the notes of its turns what it has used.
	if time.Since(c.stored) >= storePause || 2*c.turns > change.MaxNotes {
		c.store()
	}
	return c.err
}

// store adds the finished rows to the journal. The caller holds the lock.
func (c *chunkRun) store() {
	if len(c.unstored) == 0 || c.err != nil {
		return
	}
	e := entry{Rows: c.unstored, Stats: c.currentStats()}
	e.Stats.Events = c.rowless.all
	c.unstored, c.rowless, c.stored, c.turns = nil, eventSums{}, time.Now(), 0
	c.err = c.calls.journal.add(e)
}

// flush stores all that the attempt has finished. The caller holds the lock.
func (c *chunkRun) flush() {
	if c.store(); c.err == nil {
		c.err = c.calls.journal.sync()
	}
}

// sender sends a heartbeat and waits for the answer.
type sender func(ctx context.Context, token []byte, details ...any) error

// beat reports that the worker lives, and where finished rows are, until the returned func is called.
// When the worker stops, it ends the run of the chunk after the calls that have begun, or after drain. It also does when Temporal has not answered for so long
// that it gives the chunk to another worker.
//
// It sends by itself: the SDK ends an activity whose heartbeat has no answer within the time between
// two heartbeats, and nothing else may be reported meanwhile.
func (c *chunkRun) beat(ctx context.Context, send sender) func() {
	ctx, end := context.WithCancel(ctx)
	lost := time.AfterFunc(c.task.Heartbeat, func() { c.cancel(errLost) })
	pause := beatPause(c.task.Heartbeat)
	next := time.NewTimer(pause)
	stops := activity.GetWorkerStopChannel(ctx)
	var attached chan context.Context
	c.beats = ctx
	c.calls.setDue(time.Now().Add(c.task.Heartbeat))
	if b := begunOf(ctx); b != nil { // it does not report before it is an activity; see chunkRunner.begin
		lost.Stop()
		next.Stop()
		c.beats, stops, attached = nil, c.stopping, b.attached
		c.calls.setDue(time.Now().Add(taskTime(c.task.Heartbeat)))
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		defer next.Stop()
		var drained <-chan struct{}
		var late <-chan time.Time
		for {
			select {
			case c.beats = <-attached:
				lost.Reset(c.task.Heartbeat)
				c.calls.setDue(time.Now().Add(c.task.Heartbeat))
				next.Reset(0) // its run may have been canceled meanwhile
			case <-next.C:
				began := time.Now()
				if c.report(ctx, send) != nil {
					next.Reset(pause / beatShares)
					continue
				}
				lost.Reset(c.task.Heartbeat - time.Since(began))
				c.calls.setDue(began.Add(c.task.Heartbeat))
				next.Reset(pause - time.Since(began))
			case <-stops:
				stops, drained, late = nil, c.calls.stop(), time.After(c.drain)
			case <-drained:
				c.cancel(errStopping)
				drained = nil
			case <-late:
				c.cancel(errStopping)
				late = nil
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		end()
		wait.Wait()
		lost.Stop()
		if c.isRepeated && c.ctx.Err() == nil && c.beats != nil {
			_ = c.report(c.ctx, send) // what was not reported runs again, by the log of calls
		}
	}
}

// beatPause returns the time between two heartbeats of a chunk whose worker may be silent for a time.
func beatPause(heartbeat time.Duration) time.Duration { return min(maxBeat, heartbeat/beatsLost) }

// report sends one heartbeat.
func (c *chunkRun) report(ctx context.Context, send sender) error {
	c.mu.Lock()
	c.store()
	at := c.place()
	c.mu.Unlock()
	if c.waves != nil {
		at.Waves, _ = c.waves.state(ctx) // the run reports the error
	}
	limited, cancel := context.WithTimeout(ctx, c.task.Heartbeat)
	defer cancel()
	err := send(limited, activity.GetInfo(c.beats).TaskToken, at)
	if ends(err) {
		activity.RecordHeartbeat(c.beats, at) // the SDK gets the same answer, and ends the activity as it asks
	}
	return err
}

// ends reports whether Temporal answers a heartbeat that the activity is to end.
func ends(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone || temporal.IsCanceledError(err) || errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// place returns what a heartbeat reports; the caller holds the lock.
func (c *chunkRun) place() place {
	if c.task.Tail != nil {
		return place{Steps: c.currentStats().Steps}
	}
	return place{Alone: c.alone}
}

// untilStopped yields rows until the worker stops. Then it waits until the run ends.
func (c *chunkRun) untilStopped(ctx context.Context, rows iter.Seq[runtime.Input]) iter.Seq[runtime.Input] {
	return func(yield func(runtime.Input) bool) {
		for row := range rows {
			if c.calls != nil && c.calls.isStopping() {
				<-ctx.Done()
				c.isCut = true
				return
			}
			if !yield(row) {
				return
			}
		}
	}
}

// fail ends the chunk, which Temporal repeats.
func (c *chunkRun) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	c.cancel(repeatError{err})
}

// explain returns the error of the activity for an error of the run.
func (c *chunkRun) explain(ctx context.Context, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone = 0
	if c.ctx != nil {
		c.isRepeated = true
		c.flush()
	}
	switch {
	case c.err != nil:
		return c.err
	case errors.Is(context.Cause(ctx), errStopping):
		return &movedError{}
	case errors.Is(context.Cause(ctx), errLost):
		return context.Cause(ctx) // Temporal repeats the chunk
	case errors.Is(context.Cause(ctx), memory.ErrSuspended):
		requests, err := c.asker.requests(context.WithoutCancel(c.ctx), &c.task)
		if err != nil {
			return err
		}
		return &waitingError{requests}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return temporal.NewNonRetryableApplicationError(brief(err), failedError, nil)
}

// brief returns the text of an error, or its beginning: it is part of the history and the state of a workflow.
func brief(err error) string { return textfmt.Ellipsis(err.Error(), 4*maxKept) }

// Load returns the results of a row that an earlier attempt has finished.
func (c *chunkRun) Load(key checkpoint.Key, take func(data []byte) error) (found bool, err error) {
	c.mu.Lock()
	row := c.finished[key]
	c.mu.Unlock()
	if row == nil {
		return false, nil
	}
	for _, data := range row.Results {
		if err := take(data); err != nil {
			return true, err
		}
	}
	return true, nil
}

// event counts tokens, turns and fallbacks. Those of a row are stored with it, so that a
// repeated row is counted once.
func (c *chunkRun) event(ev steps.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ev.Kind == steps.EventTurn {
		c.turns++
	}
	if c.ctx == nil || ev.Row == 0 || c.task.Tail != nil || c.segment != 0 || c.saved[ev.Row] || c.finished[checkpoint.Key{Row: ev.Row}] != nil {
		c.events.add(eventOf(ev))
		c.rowless.add(eventOf(ev))
		return
	}
	if c.open == nil {
		c.open = map[int64]*eventSums{}
	}
	if c.open[ev.Row] == nil {
		c.open[ev.Row] = &eventSums{}
	}
	c.open[ev.Row].add(eventOf(ev))
}

// close counts the events of a row as those of a finished one, and returns them; the caller holds the lock.
func (c *chunkRun) close(row int64) []event {
	sums := c.open[row]
	if sums == nil {
		return nil
	}
	delete(c.open, row)
	c.events.addAll(sums.all)
	return sums.all
}

// stats returns the counts of this attempt and the earlier ones.
func (c *chunkRun) stats() stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range slices.Sorted(maps.Keys(c.open)) {
		c.close(row)
	}
	return c.currentStats()
}

func (c *chunkRun) currentStats() stats {
	return stats{Steps: addSteps(c.before.Steps, stepsOf(c.counted)), Events: c.events.all, HasFailed: c.before.HasFailed || c.counted.HasFailures()}
}
