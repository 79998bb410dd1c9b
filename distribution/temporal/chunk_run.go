package temporal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// storePause is the shortest time between two times at which finished rows are stored.
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
type movedError struct{ at place }

// Error returns the reason.
func (e *movedError) Error() string { return errStopping.Error() }

// waitingError ends a chunk that waits for answers.
type waitingError struct{ requests []keyedRequest }

// Error returns how many answers are missing.
func (e *waitingError) Error() string { return fmt.Sprintf("%d answers are missing", len(e.requests)) }

// chunkRun is one attempt to run a chunk. It is the checkpoint.Store of the run.
type chunkRun struct {
	blobs   *blobs
	task    task
	counted *runtime.Progress
	ctx     context.Context // of the activity; nil for a local one, which stores nothing
	cancel  context.CancelCauseFunc
	asker   *asker        // nil if no row may wait
	calls   *callLog      // nil for a local activity
	drain   time.Duration // how long calls may last when the worker stops
	isCut   bool          // rows were left out, because the worker stops

	mu         sync.Mutex
	finished   map[checkpoint.Key]*finishedRow // also those of earlier attempts
	pending    map[checkpoint.Key]*finishedRow // rows of which further results follow
	order      []checkpoint.Key                // of the finished rows
	before     stats                           // of earlier attempts
	events     eventSums                       // of finished rows, and those of no row
	open       map[int64]*eventSums            // of rows that are not finished, by their numbers
	isDirty    bool                            // finished has rows that are not stored
	stored     time.Time                       // when it was stored last
	at         place                           // where it was stored last
	err        error                           // why it cannot be stored
	alone      int                             // the number of the row that runs alone; 0 for none
	lethal     int                             // the number of the row that ended its worker when it ran alone; 0 for none
	isRepeated bool                            // the attempt has failed: the last heartbeat is for the next one
	parts      storedParts                     // of the last steps of a flow with batch steps
}

// restore reads what an earlier attempt has stored, and opens the log of calls.
func (c *chunkRun) restore(ctx context.Context) error {
	c.ctx, c.calls = ctx, c.newCallLog(ctx)
	if c.task.Tail != nil {
		return c.restoreParts(ctx)
	}
	var at place
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &at); err != nil {
			return err
		}
	}
	c.lethal, at.Alone = at.Alone, 0
	if at.Blob == "" && at.Inline == nil && c.task.Moved != nil {
		at = *c.task.Moved
	}
	if at.Blob == "" && at.Inline == nil && c.task.mayHaveBegun(ctx) {
		at.Blob = partName(c.task.folder(), c.task.Partition, c.task.Number)
	}
	var p progress
	switch {
	case at.Inline != nil:
		if err := decode(at.Inline, &p); err != nil {
			return err
		}
	case at.Blob != "":
		err := c.blobs.read(ctx, at.Blob, &p)
		if errors.Is(err, fs.ErrNotExist) {
			err = c.restoreEarlier(ctx, &p)
		}
		if err != nil {
			return err
		}
	}
	for _, row := range p.Rows {
		c.finished[row.Key] = &row
		c.order = append(c.order, row.Key)
	}
	c.before, c.at = p.Stats, at
	c.events.addAll(p.Stats.Events)
	return nil
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
	c.finished[key] = row
	c.order = append(c.order, key)
	c.close(key.Row)
	c.isDirty = true
	if time.Since(c.stored) >= c.pause() {
		c.store()
	}
	return c.err
}

// pause returns the shortest time between two times at which finished rows are stored.
func (c *chunkRun) pause() time.Duration {
	if c.task.Tail != nil {
		return c.parts.pause()
	}
	return storePause
}

// store stores the finished rows; the next heartbeat reports where they are. It is a blob if the activity
// was canceled, because Temporal takes no more reports. The caller holds the lock.
func (c *chunkRun) store() {
	if !c.isDirty || c.err != nil {
		return
	}
	if c.task.Tail != nil {
		c.storePart()
		return
	}
	p := progress{Stats: c.currentStats()}
	for _, key := range c.order {
		p.Rows = append(p.Rows, *c.finished[key])
	}
	c.isDirty, c.stored = false, time.Now()
	if c.task.Rows != nil && c.ctx.Err() == nil {
		if data, err := encode(p); err == nil && len(data) <= maxInline {
			c.at = place{Inline: data}
			return
		}
	}
	c.at = place{Blob: partName(c.task.folder(), c.task.Partition, c.task.Number)}
	c.err = c.blobs.write(context.WithoutCancel(c.ctx), c.at.Blob, p)
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
	var wait sync.WaitGroup
	wait.Go(func() {
		pause := c.beatPause()
		next := time.NewTimer(pause)
		defer next.Stop()
		stops := activity.GetWorkerStopChannel(ctx)
		var drained <-chan struct{}
		var late <-chan time.Time
		for {
			select {
			case <-next.C:
				began := time.Now()
				if c.report(ctx, send) != nil {
					next.Reset(pause / beatShares)
					continue
				}
				lost.Reset(c.task.Heartbeat - time.Since(began))
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
		if c.isRepeated && c.ctx.Err() == nil {
			_ = c.report(c.ctx, send) // what was not reported runs again, by the log of calls
		}
	}
}

// beatPause returns the time between two heartbeats.
func (c *chunkRun) beatPause() time.Duration { return min(maxBeat, c.task.Heartbeat/beatsLost) }

// report sends one heartbeat.
func (c *chunkRun) report(ctx context.Context, send sender) error {
	c.mu.Lock()
	if c.task.Tail == nil || time.Since(c.stored) >= c.pause() {
		c.store()
	}
	at := c.place()
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, c.task.Heartbeat)
	defer cancel()
	err := send(limited, activity.GetInfo(ctx).TaskToken, at)
	if ends(err) {
		activity.RecordHeartbeat(ctx, at) // the SDK gets the same answer, and ends the activity as it asks
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
	at := c.at
	at.Alone = c.alone
	return at
}

// newCallLog returns the log of the calls of the chunk.
func (c *chunkRun) newCallLog(ctx context.Context) *callLog {
	return &callLog{
		ctx: ctx, blobs: c.blobs, folder: callsName(c.task.folder(), c.task.Partition, c.task.Number),
		repeats: c.task.mayHaveBegun(ctx), active: map[string]bool{},
		fail: c.fail,
	}
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
		c.isDirty, c.isRepeated = len(c.order) > 0, true
		c.store()
	}
	switch {
	case c.err != nil:
		return c.err
	case errors.Is(context.Cause(ctx), errStopping):
		return &movedError{c.at}
	case errors.Is(context.Cause(ctx), errLost):
		return context.Cause(ctx) // Temporal repeats the chunk
	case errors.Is(context.Cause(ctx), memory.ErrSuspended):
		return &waitingError{requests: c.asker.requests()}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), failedError, nil)
}

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
	if c.ctx == nil || ev.Row == 0 || c.task.Tail != nil || c.finished[checkpoint.Key{Row: ev.Row}] != nil {
		c.count(eventOf(ev))
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

// count counts an event of no row, or of a finished one; the caller holds the lock.
func (c *chunkRun) count(ev event) {
	c.events.add(ev)
	if c.task.Tail != nil {
		c.parts.events.add(ev)
	}
}

// close counts the events of a row as those of a finished one; the caller holds the lock.
func (c *chunkRun) close(row int64) {
	if sums := c.open[row]; sums != nil {
		c.events.addAll(sums.all)
	}
	delete(c.open, row)
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
