package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	firstTask   = 3           // the events of a history when its first workflow task has begun
	maxTaskTime = time.Minute // of a workflow task that begins a chunk
	cancelLook  = time.Second // between two looks whether the run of such a chunk is canceled
)

// taskTime returns how long a worker may be silent that begins a chunk in a workflow task.
func taskTime(heartbeat time.Duration) time.Duration {
	return max(min(heartbeat, maxTaskTime), time.Second)
}

// runChunk runs a chunk. The first workflow task of a request, or of a turn in a lane, begins it: one that ends before its first heartbeat
// needs no activity. Any later workflow task may follow the end of a worker, so an activity runs the chunk then.
func (r *scheduler) runChunk(ctx workflow.Context, partition, number int) (made done, err error) {
	t := r.task(partition, number)
	isFirst := workflow.GetInfo(ctx).GetCurrentHistoryLength() <= r.first && t.Moved == nil && t.Answers == nil
	if r.plan.Begin && isFirst {
		made, err = r.begin(ctx, &t)
		failure, failed := errors.AsType[*temporal.ApplicationError](err)
		if err == nil && !made.Busy || ctx.Err() != nil || temporal.IsCanceledError(err) || failed && failure.NonRetryable() {
			return made, err
		}
		t.Resumed, made = t.Resumed || !made.Busy, done{}
	}
	err = r.execute(ctx, &t).Get(ctx, &made)
	return made, err
}

// begin runs a chunk in the workflow task, and in an activity of the same worker if it takes longer.
func (r *scheduler) begin(ctx workflow.Context, t *task) (made done, err error) {
	once := &temporal.RetryPolicy{MaximumAttempts: 1}
	options := workflow.LocalActivityOptions{StartToCloseTimeout: maxLocalTime, RetryPolicy: once, Summary: r.summary(t)}
	local := workflow.WithLocalActivityOptions(ctx, options)
	if err := workflow.ExecuteLocalActivity(local, beginName, *t).Get(ctx, &made); err != nil || made.Queue == "" {
		return made, err
	}
	here := *t
	here.Begun = true
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: made.Queue, ScheduleToStartTimeout: r.plan.Heartbeat, StartToCloseTimeout: maxChunkTime, HeartbeatTimeout: r.plan.Heartbeat,
		WaitForCancellation: true, RetryPolicy: once, Summary: r.summary(t),
	})
	made = done{}
	err = workflow.ExecuteActivity(ctx, activityName, here).Get(ctx, &made)
	return made, err
}

// begun is a chunk that a workflow task has begun.
type begun struct {
	cancel   context.CancelCauseFunc
	attached chan context.Context // the activity that the chunk becomes
	ended    chan struct{}
	made     done
	err      error
	late     *time.Timer // ends a chunk that does not become an activity
}

// begunKey is the key of the begun of a context.
type begunKey struct{}

// begunOf returns the begun of the context of a chunk; nil for one that an activity runs.
func begunOf(ctx context.Context) *begun {
	b, _ := ctx.Value(begunKey{}).(*begun)
	return b
}

// isLocal reports whether a chunk only computes: nothing of it is stored before its end.
func isLocal(ctx context.Context) bool {
	return activity.GetInfo(ctx).IsLocalActivity && begunOf(ctx) == nil
}

// chunkKey identifies a chunk.
func (t *task) chunkKey() string { return callsName(t.folder(), t.Partition, t.Number) }

// begin is the local activity that begins a chunk. It returns before the first heartbeat would be due.
func (w *chunkRunner) begin(ctx context.Context, t task) (done, error) {
	limit := w.slots[t.Flow]
	if limit == nil || isClosed(w.stopping) || !limit.try() {
		return done{Busy: true}, nil
	}
	began := time.Now()
	b := &begun{attached: make(chan context.Context, 1), ended: make(chan struct{})}
	own, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), begunKey{}, b))
	b.cancel = cancel
	w.ongoing.Go(func() {
		defer limit.release()
		defer close(b.ended)
		b.made, b.err = w.run(own, t)
	})
	brief := time.NewTimer(beatPause(t.Heartbeat))
	defer brief.Stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-b.ended:
		return b.made, b.err
	case <-w.stopping: // the calls that have begun end
		<-b.ended
		return b.made, b.err
	case <-ctx.Done():
		cancel(context.Cause(ctx))
		<-b.ended
		return b.made, b.err
	case <-w.canceled(ctx):
		cancel(temporal.NewCanceledError())
		<-b.ended
		return b.made, temporal.NewCanceledError()
	case <-brief.C:
	}
	w.handOver(t, b, began)
	return done{Queue: w.queue}, nil
}

// handOver lets a chunk wait for the activity that it becomes.
func (w *chunkRunner) handOver(t task, b *begun, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun == nil {
		w.begun = map[string]*begun{}
	}
	key := t.chunkKey()
	w.begun[key] = b
	b.late = time.AfterFunc(taskTime(t.Heartbeat)-time.Since(began), func() { // then Temporal gives it to another worker
		if w.take(key) != nil {
			b.cancel(errLost)
		}
	})
}

// canceled returns a channel that is closed when the run of a chunk is canceled, of which Temporal tells a worker only when the workflow task
// has ended. It asks until ctx ends.
func (w *chunkRunner) canceled(ctx context.Context) <-chan struct{} {
	run := activity.GetInfo(ctx).WorkflowExecution
	noted := make(chan struct{})
	w.ongoing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(cancelLook):
			}
			if w.isCanceled(ctx, run) {
				close(noted)
				return
			}
		}
	})
	return noted
}

// take removes and returns a chunk that was begun and is no activity yet; nil if there is none.
func (w *chunkRunner) take(key string) *begun {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.begun[key]
	delete(w.begun, key)
	return b
}

// attach is the activity of a chunk that was begun in this worker. It runs one that has been given up again.
func (w *chunkRunner) attach(ctx context.Context, t task) (done, error) {
	b := w.take(t.chunkKey())
	if b == nil {
		t.Begun, t.Resumed = false, true
		return w.run(ctx, t)
	}
	b.late.Stop()
	b.attached <- ctx
	select {
	case <-b.ended:
	case <-ctx.Done():
		b.cancel(context.Cause(ctx))
		<-b.ended
	}
	return b.made, b.err
}

// isClosed reports whether a channel is closed; a nil one is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// slots limit the chunks of a flow that run at once in a worker: activities, and those that workflow tasks have begun. They
// are a worker.SlotSupplier.
type slots chan struct{}

// try takes a slot if one is free.
func (s slots) try() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) release() { <-s }

// ReserveSlot waits for a slot.
func (s slots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	select {
	case s <- struct{}{}:
		return &worker.SlotPermit{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TryReserveSlot takes a slot if one is free.
func (s slots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit {
	if !s.try() {
		return nil
	}
	return &worker.SlotPermit{}
}

// MarkSlotUsed does nothing.
func (s slots) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot frees a slot.
func (s slots) ReleaseSlot(worker.SlotReleaseInfo) { s.release() }

// MaxSlots returns the limit.
func (s slots) MaxSlots() int { return cap(s) }
