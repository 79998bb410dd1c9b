package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// Fault is what happens in a step, in the place of its work on a row: an error,
// a panic, a wait. With nil the step does its work.
type Fault func(ctx context.Context, row *steps.Row) error

// Sabotage runs a flow in which a fault may happen before a step's work on each
// of its rows, and hands over the rows that come out. It is for tests outside
// of this package.
func Sabotage(ctx context.Context, a *App, step string, fault Fault, rows []Input, out func(*steps.Row)) error {
	declared, err := a.Flow("main")
	if err != nil {
		return err
	}
	f, err := a.compile(declared)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(f.nodes, func(n *node) bool { return n.id == step })
	if i < 0 {
		return errors.New("there is no step " + step)
	}
	f.nodes[i].sabotage(fault)
	ctx, cancel := context.WithCancel(ctx)
	first := chain(ctx, f.stages, rowSink(out))
	defer first.stop()
	defer cancel()
	for i, in := range rows {
		if err := first.push(ctx, f.newRowAllocator().fromInput(in, int64(i)+1)); err != nil {
			return err
		}
	}
	return first.finish(ctx)
}

// sabotage puts the fault into the step itself, inside of its timeout and retries.
func (n *node) sabotage(fault Fault) {
	if n.batch != nil {
		if c, ok := n.batch.(*retryBatch); ok {
			c.batch = faultyBatch{c.batch, fault}
			return
		}
		n.batch = faultyBatch{n.batch, fault}
		return
	}
	if c, ok := n.step.(*retryStep); ok {
		c.step = faultyStep{c.step, fault}
		return
	}
	n.step = faultyStep{n.step, fault}
}

type faultyStep struct {
	steps.Step
	fault Fault
}

func (f faultyStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	if err := f.fault(ctx, row); err != nil {
		return err
	}
	return f.Step.Process(ctx, row, emit)
}

type faultyBatch struct {
	real  steps.Batch
	fault Fault
}

func (f faultyBatch) Size() int { return f.real.Size() }

func (f faultyBatch) Batch(ctx context.Context, rows []*steps.Row, emit steps.Emit) error {
	for _, row := range rows {
		if err := f.fault(ctx, row); err != nil {
			return err
		}
	}
	return f.real.Batch(ctx, rows, emit)
}

type rowSink func(*steps.Row)

func (s rowSink) push(_ context.Context, row *steps.Row) error { s(row); return nil }
func (s rowSink) finish(context.Context) error                 { return nil }
func (s rowSink) stop()                                        {}
