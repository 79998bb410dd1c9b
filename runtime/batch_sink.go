package runtime

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/internal/waves"
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
			ctx, waiting := n.pass.Enter(ctx, n.id, waves.NoRow, "batch")
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

// pipe takes rows through consecutive steps, for one goroutine. The functions that
// connect the steps are made once, not for each row.
type pipe struct {
	ctx    context.Context // of the run
	nodes  []*node
	hops   []emitter
	out    steps.Emit // receives the rows after the last step
	clock  *stopwatch // nil if the times of the steps are not measured
	events bool       // the starts and ends of steps are reported
	trace  *flowTrace // nil if nothing observes the run
}

// emitter is how rows leave a step.
type emitter struct {
	next    steps.Emit // continues with the next step
	emit    steps.Emit // next for the rows that the step emits; see emitTo
	stopped *error     // an error of next, which ends the run
	traced  tracedStep // what observers know of the step; set with the first row
}

func newPipe(ctx context.Context, nodes []*node, out steps.Emit) *pipe {
	p := &pipe{ctx: ctx, nodes: nodes, hops: make([]emitter, len(nodes)), out: out}
	p.events, p.trace = wantsStepEvents(ctx), flowTraceOf(ctx)
	if p.clock = newStopwatch(nodes); p.clock != nil {
		p.out = func(r *steps.Row) error {
			defer p.clock.switchTo(p.clock.switchTo(nil))
			return out(r)
		}
	}
	for i, n := range nodes {
		h := &p.hops[i]
		h.next = func(r *steps.Row) error { return p.processFrom(i+1, r) }
		h.emit, h.stopped = n.emitTo(ctx, h.next)
	}
	return p
}

// process takes a row through the steps, depth first: a row that a step emits goes
// through the following steps before the step continues. The error is that of out or
// of the context; an error of a step is in its row.
func (p *pipe) process(row *steps.Row) error {
	p.clock.begin()
	err := p.processFrom(0, row)
	p.clock.end()
	return err
}

// processFrom is process from step i on.
func (p *pipe) processFrom(i int, row *steps.Row) error {
	if row.Err != nil {
		if i < len(p.nodes) {
			blockSession(p.nodes[i:], row)
		}
		notifyFailed(p.nodes[i:], row)
		p.trace.skipped(p.nodes[i:])
		return p.out(row)
	}
	if i == len(p.nodes) || row.Replayed {
		return p.out(row)
	}
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	n, h := p.nodes[i], &p.hops[i]
	n.count.in.Add(1)
	if p.clock != nil {
		defer p.clock.switchTo(p.clock.switchTo(n.count))
	}
	if n.permits != nil {
		return n.processLimited(p.ctx, row, h.next, func(emit steps.Emit) error { return p.run(i, row, emit) })
	}
	err := p.run(i, row, h.emit)
	return n.handleError(p.ctx, row, outcome{err, *h.stopped}, h.next)
}

// run runs step i on a row, and reports it where that is wanted.
func (p *pipe) run(i int, row *steps.Row, emit steps.Emit) error {
	n := p.nodes[i]
	if !p.events && p.trace == nil {
		return n.process(p.ctx, row, emit)
	}
	ctx := p.ctx
	if p.events {
		end := reportStep(ctx, n.id, row)
		err := p.observe(i, row, func(r *steps.Row) error {
			end(n.failureOf(r))
			return emit(r)
		})
		end(err)
		return err
	}
	return p.observe(i, row, emit)
}

// observe runs step i on a row, as an operation if the run has observers.
func (p *pipe) observe(i int, row *steps.Row, emit steps.Emit) error {
	n, h := p.nodes[i], &p.hops[i]
	if p.trace == nil {
		return n.process(p.ctx, row, emit)
	}
	if h.traced.trace == nil {
		h.traced = traceStep(p.ctx, p.trace, n)
	}
	return h.traced.process(row, emit)
}

// closeAll closes the steps that have state. The rows that they emit go through the
// steps after them.
func closeAll(ctx context.Context, nodes []*node, emit steps.Emit) error {
	for i, n := range nodes {
		if n.closer == nil {
			continue
		}
		pass, stopped := n.emitTo(ctx, newPipe(ctx, nodes[i+1:], emit).process)
		err := recoverPanics(func() error { return n.closer.Close(ctx, pass) })
		switch {
		case *stopped != nil:
			return *stopped
		case err != nil:
			return &steps.Error{Step: n.id, Err: err}
		}
	}
	return nil
}

// serialSink processes one row after the other.
type serialSink struct {
	pipe *pipe
	next sink
}

func newSerialSink(ctx context.Context, nodes []*node, next sink) *serialSink {
	return &serialSink{newPipe(ctx, nodes, func(r *steps.Row) error { return next.push(ctx, r) }), next}
}

func (s *serialSink) push(_ context.Context, row *steps.Row) error { return s.pipe.process(row) }

func (s *serialSink) finish(ctx context.Context) error {
	err := closeAll(ctx, s.pipe.nodes, func(r *steps.Row) error { return s.next.push(ctx, r) })
	if err != nil {
		return err
	}
	return s.next.finish(ctx)
}

func (s *serialSink) stop() { s.next.stop() }

func (s *serialSink) downstream() sink { return s.next }
