package runtime

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/steps"
)

// maxDeferred is the number of failed rows in succession that wait for a batch with a
// size limit. It limits what the step buffers.
const maxDeferred = 10_000

// batchSink collects rows into batches for a batch step. The results of a batch
// have the place of its last row. Failed rows are in no batch: a failed row is
// emitted when a later row has joined the batch, or after the batch.
type batchSink struct {
	node     *node
	next     sink
	rows     []*steps.Row
	deferred []*steps.Row          // failed rows after the last of rows
	mayDefer func(*steps.Row) bool // reports whether a failed row may wait; nil if each may
	since    time.Time             // when the first of rows arrived, if the node has a maxWait
	out      steps.Emit            // passes a row to next
	emit     steps.Emit            // out for the rows that the step emits
	stopped  *error                // an error of out, which ends the run
	clock    *stopwatch            // nil if the time of the step is not measured
}

func newBatchSink(ctx context.Context, n *node, next sink) *batchSink {
	b := &batchSink{node: n, next: next, out: func(r *steps.Row) error { return next.push(ctx, r) }}
	if b.clock = newStopwatch([]*node{n}); b.clock != nil {
		b.out = func(r *steps.Row) error {
			defer b.clock.switchTo(b.clock.switchTo(nil))
			return next.push(ctx, r)
		}
	}
	b.emit, b.stopped = n.emitTo(ctx, b.out)
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

// forward passes on a failed row, in its place.
func (b *batchSink) forward(ctx context.Context, row *steps.Row) error {
	notifyFailed([]*node{b.node}, row)
	flowTraceOf(ctx).skipped([]*node{b.node})
	n := len(b.rows)
	if n > 0 && b.node.grouper != nil && b.node.grouper.OtherGroup(b.rows[n-1], row) {
		if err := b.flush(ctx); err != nil { // the batch is complete, and comes before the row
			return err
		}
		n = 0
	}
	if n == 0 {
		return b.next.push(ctx, row)
	}
	b.deferred = append(b.deferred, row)
	full := b.node.batch.Size() > 0 && len(b.deferred) >= maxDeferred
	if full || b.mayDefer != nil && !b.mayDefer(row) {
		return b.release(ctx)
	}
	return nil
}

// release passes on the failed rows that waited.
func (b *batchSink) release(ctx context.Context) error {
	deferred := b.deferred
	b.deferred = deferred[:0]
	defer clear(deferred)
	for _, row := range deferred {
		if err := b.next.push(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// flush processes the batch, and passes on the failed rows after it.
func (b *batchSink) flush(ctx context.Context) error {
	if err := b.process(ctx); err != nil {
		return err
	}
	return b.release(ctx)
}

func (b *batchSink) process(ctx context.Context) error {
	rows := b.rows
	if len(rows) == 0 {
		return nil
	}
	b.rows = rows[:0]
	defer clear(rows)
	b.node.count.in.Add(int64(len(rows)))
	if b.clock != nil {
		b.clock.begin()
		defer b.clock.end()
		defer b.clock.switchTo(b.clock.switchTo(b.node.count))
	}
	err := b.node.processBatch(ctx, rows, b.emit)
	if err == nil || *b.stopped != nil {
		return *b.stopped
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, row := range rows {
		if err := b.node.failed(ctx, row, err, b.out); err != nil {
			return err
		}
	}
	return nil
}

// processBatch runs the batch step on rows, and reports it where that is wanted.
func (n *node) processBatch(ctx context.Context, rows []*steps.Row, emit steps.Emit) error {
	run := func(ctx context.Context, emit steps.Emit) error {
		return recoverPanics(func() error {
			if n.pass == nil {
				return n.batch.Batch(ctx, rows, emit)
			}
			ctx, waiting := n.pass.Enter(ctx, n.id, "batch")
			return suspendable(ctx, waiting, emit, func(ctx context.Context, emit steps.Emit) error { return n.batch.Batch(ctx, rows, emit) })
		})
	}
	if t := flowTraceOf(ctx); t != nil {
		traced, plain := traceStep(ctx, t, n), run
		run = func(_ context.Context, emit steps.Emit) error { return traced.batch(rows, emit, plain) }
	}
	if !wantsStepEvents(ctx) {
		return run(ctx, emit)
	}
	failed, end := reportBatch(ctx, n.id, rows)
	err := run(ctx, func(r *steps.Row) error {
		if n.failureOf(r) != nil {
			failed(r)
		}
		return emit(r)
	})
	end(err)
	return err
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

func (b *batchSink) downstream() sink { return b.next }
