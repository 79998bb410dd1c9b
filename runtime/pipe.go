package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
)

// pipe takes rows through a run of steps, for one goroutine. What a step needs
// is made once here, not for each row: a row costs what its steps cost.
type pipe struct {
	ctx   context.Context // of the run
	nodes []*node
	hops  []emitter
	out   steps.Emit // takes what comes out at the end
	clock *stopwatch // nil where nobody asks for the steps' times
}

// emitter is how rows leave a step.
type emitter struct {
	next    steps.Emit // goes on with the step behind
	emit    steps.Emit // next for what the step emits: counted, its errors remembered
	stopped *error     // what next has answered emit, which ends the run
}

func newPipe(ctx context.Context, nodes []*node, out steps.Emit) *pipe {
	p := &pipe{ctx: ctx, nodes: nodes, hops: make([]emitter, len(nodes)), out: out}
	if len(nodes) > 0 && nodes[0].timed {
		p.clock = &stopwatch{}
		p.out = func(r *steps.Row) error {
			defer p.clock.switchTo(nil)()
			return out(r)
		}
	}
	for i, n := range nodes {
		h := &p.hops[i]
		h.next = func(r *steps.Row) error { return p.processFrom(i+1, r) }
		h.emit, h.stopped = n.emitTo(h.next)
	}
	return p
}

// process takes a row through the steps, depth first: what a step emits goes
// through the rest before the step goes on. The error is that of the end of the
// pipe or the context's; what a step says against its row is kept in the row.
func (p *pipe) process(row *steps.Row) error { return p.processFrom(0, row) }

// processFrom is take from a step on.
func (p *pipe) processFrom(i int, row *steps.Row) error {
	if row.Err != nil {
		notifyFailed(p.nodes[i:], row)
		return p.out(row)
	}
	if i == len(p.nodes) || row.Done {
		return p.out(row)
	}
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	n, h := p.nodes[i], &p.hops[i]
	n.count.in.Add(1)
	if p.clock != nil {
		defer p.clock.switchTo(n.count)()
	}
	if n.permits != nil {
		return n.limited(p.ctx, row, h.next)
	}
	err := n.process(p.ctx, row, h.emit)
	return n.handleError(p.ctx, row, outcome{err, *h.stopped}, h.next)
}

// process runs the step on a row.
func (n *node) process(ctx context.Context, row *steps.Row, emit steps.Emit) (err error) {
	defer recovered(&err)
	return n.step.Process(ctx, row, emit)
}
