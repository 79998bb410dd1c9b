package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

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
