package runtime

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// maxDeferred is how many failed rows in succession wait behind a group whose size
// is limited: it bounds what the step holds.
const maxDeferred = 10_000

// batchSink gathers rows into groups for a batch step. What comes of a group
// stands in the place of its last row. Failed rows are not grouped: one goes on as
// soon as a later row has come into the group, or behind the group.
type batchSink struct {
	node     *node
	next     sink
	rows     []*steps.Row
	late     []*steps.Row          // failed rows behind the last of rows
	mayDefer func(*steps.Row) bool // whether a failed row may wait; nil where each may
	since    time.Time             // when the first of rows came, where the group waits only so long
	out      steps.Emit            // hands a row to next
	emit     steps.Emit            // out for what the step emits
	stopped  *error                // what out has answered the step, which ends the run
	clock    *stopwatch            // nil where nobody asks for the step's time
}

func newBatchSink(ctx context.Context, n *node, next sink) *batchSink {
	b := &batchSink{node: n, next: next, out: func(r *steps.Row) error { return next.push(ctx, r) }}
	if n.timed {
		b.clock = &stopwatch{}
		b.out = func(r *steps.Row) error {
			defer b.clock.switchTo(nil)()
			return next.push(ctx, r)
		}
	}
	b.emit, b.stopped = n.emitTo(b.out)
	return b
}

func (b *batchSink) push(ctx context.Context, row *steps.Row) error {
	if row.Err != nil {
		return b.forward(ctx, row)
	}
	if n := len(b.rows); n > 0 && b.node.grouper != nil && !b.node.grouper.SameGroup(b.rows[n-1], row) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	if err := b.release(ctx); err != nil {
		return err
	}
	if len(b.rows) == 0 && b.node.maxWait > 0 {
		b.since = time.Now()
	}
	b.rows = append(b.rows, row)
	if size := b.node.batch.Size(); size > 0 && len(b.rows) >= size {
		return b.flush(ctx)
	}
	return nil
}

// forward lets a failed row by, in its place.
func (b *batchSink) forward(ctx context.Context, row *steps.Row) error {
	notifyFailed([]*node{b.node}, row)
	n := len(b.rows)
	if n > 0 && b.node.grouper != nil && b.node.grouper.OtherGroup(b.rows[n-1], row) {
		if err := b.flush(ctx); err != nil { // the group is complete, and stands before the row
			return err
		}
		n = 0
	}
	if n == 0 {
		return b.next.push(ctx, row)
	}
	b.late = append(b.late, row)
	full := b.node.batch.Size() > 0 && len(b.late) >= maxDeferred
	if full || b.mayDefer != nil && !b.mayDefer(row) {
		return b.release(ctx)
	}
	return nil
}

// release lets the failed rows go on that waited.
func (b *batchSink) release(ctx context.Context) error {
	late := b.late
	b.late = late[:0]
	defer clear(late)
	for _, row := range late {
		if err := b.next.push(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// flush hands the group to the step, and lets the failed rows behind it go on.
func (b *batchSink) flush(ctx context.Context) error {
	if err := b.group(ctx); err != nil {
		return err
	}
	return b.release(ctx)
}

func (b *batchSink) group(ctx context.Context) error {
	rows := b.rows
	if len(rows) == 0 {
		return nil
	}
	b.rows = rows[:0]
	defer clear(rows)
	b.node.count.in.Add(int64(len(rows)))
	if b.clock != nil {
		defer b.clock.switchTo(b.node.count)()
	}
	err := recoverPanics(func() error { return b.node.batch.Batch(ctx, rows, b.emit) })
	if err == nil || *b.stopped != nil {
		return *b.stopped
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, row := range rows {
		if err := b.node.failed(row, err, b.out); err != nil {
			return err
		}
	}
	return nil
}

func (b *batchSink) finish(ctx context.Context) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	err := closeAll(ctx, []*node{b.node}, func(r *steps.Row) error { return b.next.push(ctx, r) })
	if err != nil {
		return err
	}
	return b.next.finish(ctx)
}

func (b *batchSink) stop() { b.next.stop() }
