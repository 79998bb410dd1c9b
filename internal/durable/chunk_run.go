//go:build temporal

package durable

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// storePause is the shortest time between two times at which finished rows are stored.
const storePause = 100 * time.Millisecond

// errStopping ends chunks when their worker is stopped.
var errStopping = errors.New("the worker stops; another one continues")

// chunkRun is one attempt to run a chunk. It is the checkpoint.Store of the run.
type chunkRun struct {
	blobs   *blobs
	task    task
	counted *runtime.Progress
	ctx     context.Context // of the activity; nil for a local one, which stores nothing

	mu       sync.Mutex
	finished map[int64]*finishedRow // also those of earlier attempts
	pending  map[int64]*finishedRow // rows of which further results follow
	order    []int64                // of the finished rows
	before   stats                  // of earlier attempts
	events   []event
	isDirty  bool      // finished has rows that are not stored
	stored   time.Time // when it was stored last
	at       place     // where it was stored last
	err      error     // why it cannot be stored
}

// restore reads what an earlier attempt has stored.
func (c *chunkRun) restore(ctx context.Context) error {
	c.ctx = ctx
	var at place
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &at); err != nil {
			return err
		}
	}
	if at.Blob == "" && at.Inline == nil && (c.task.Resumed || activity.GetInfo(ctx).Attempt > 1) {
		at.Blob = partName(c.task.Run, c.task.Partition, c.task.Number)
	}
	var p progress
	switch {
	case at.Inline != nil:
		if err := decode(at.Inline, &p); err != nil {
			return err
		}
	case at.Blob != "":
		if err := c.blobs.read(ctx, at.Blob, &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, row := range p.Rows {
		c.finished[row.Number] = &row
		c.order = append(c.order, row.Number)
	}
	c.before, c.events, c.at = p.Stats, p.Stats.Events, at
	return nil
}

// Save adds results of a row; see checkpoint.Store.
func (c *chunkRun) Save(key checkpoint.Key, rows []checkpoint.Row, last bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.pending[key.Row]
	if row == nil {
		row = &finishedRow{Number: key.Row}
	}
	for _, r := range rows {
		row.Results = append(row.Results, append([]byte{}, r.Data...))
	}
	if !last {
		if c.pending == nil {
			c.pending = map[int64]*finishedRow{}
		}
		c.pending[key.Row] = row
		return c.err
	}
	delete(c.pending, key.Row)
	c.finished[key.Row] = row
	c.order = append(c.order, key.Row)
	c.isDirty = true
	if time.Since(c.stored) >= storePause {
		c.store()
	}
	return c.err
}

// store stores the finished rows and reports to Temporal where they are: a blob if the activity
// was canceled, because Temporal takes no more reports. The caller holds the lock.
func (c *chunkRun) store() {
	if !c.isDirty || c.err != nil {
		return
	}
	p := progress{Stats: c.currentStats()}
	for _, number := range c.order {
		p.Rows = append(p.Rows, *c.finished[number])
	}
	c.isDirty, c.stored = false, time.Now()
	if c.task.Rows != nil && c.ctx.Err() == nil {
		if data, err := encode(p); err == nil && len(data) <= maxInline {
			c.at = place{Inline: data}
			activity.RecordHeartbeat(c.ctx, c.at)
			return
		}
	}
	c.at = place{Blob: partName(c.task.Run, c.task.Partition, c.task.Number)}
	if c.err = c.blobs.write(context.WithoutCancel(c.ctx), c.at.Blob, p); c.err == nil {
		activity.RecordHeartbeat(c.ctx, c.at)
	}
}

// beat reports that the worker lives until the returned func is called, and ends the run
// of the chunk when the worker stops.
func (c *chunkRun) beat(ctx context.Context, cancel context.CancelCauseFunc) func() {
	end := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		ticks := time.NewTicker(c.task.Beat)
		defer ticks.Stop()
		stops := activity.GetWorkerStopChannel(ctx)
		for {
			select {
			case <-ticks.C:
				c.mu.Lock()
				c.store()
				activity.RecordHeartbeat(ctx, c.at)
				c.mu.Unlock()
			case <-stops:
				cancel(errStopping)
				stops = nil
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		wait.Wait()
	}
}

// explain returns the error of the activity for an error of the run.
func (c *chunkRun) explain(ctx context.Context, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		c.isDirty = len(c.order) > 0
		c.store()
	}
	switch {
	case errors.Is(context.Cause(ctx), errStopping):
		return errStopping // Temporal repeats the chunk
	case ctx.Err() != nil:
		return ctx.Err()
	case c.err != nil:
		return c.err
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), failedError, nil)
}

// Load returns the results of a row that an earlier attempt has finished.
func (c *chunkRun) Load(key checkpoint.Key, take func(data []byte) error) (found bool, err error) {
	c.mu.Lock()
	row := c.finished[key.Row]
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

// event counts tokens, turns and fallbacks.
func (c *chunkRun) event(ev steps.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = addEvent(c.events, eventOf(ev))
}

// stats returns the counts of this attempt and the earlier ones.
func (c *chunkRun) stats() stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentStats()
}

func (c *chunkRun) currentStats() stats {
	return stats{Steps: addSteps(c.before.Steps, stepsOf(c.counted)), Events: c.events}
}
