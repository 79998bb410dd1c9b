package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/steps"
)

// FailFunc is called before a step processes a row. It may return an error, panic or
// block. If it returns nil, the step processes the row.
type FailFunc func(ctx context.Context, row *steps.Row) error

// RunWithFailures runs the flow main and calls fail before a step processes each of
// its rows. It passes the results to out. It is for tests in package runtime_test.
func RunWithFailures(ctx context.Context, a *App, step string, fail FailFunc, rows []Input, out func(*steps.Row)) error {
	declared, err := a.Flow("main")
	if err != nil {
		return err
	}
	f, err := a.compile(declared, 0)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(f.nodes, func(n *node) bool { return n.id == step })
	if i < 0 {
		return errors.New("no step " + step)
	}
	f.nodes[i].failWith(fail)
	ctx, cancel := context.WithCancel(ctx)
	first := chain(ctx, f.stages, rowSink(out))
	defer first.stop()
	defer cancel()
	for i, in := range rows {
		if err := first.push(ctx, f.newRowAllocator().fromInput(ctx, in, int64(i)+1)); err != nil {
			return err
		}
	}
	return first.finish(ctx)
}

// failWith wraps the step itself, inside of its timeout and retries.
func (n *node) failWith(fail FailFunc) {
	if n.batch != nil {
		if c, ok := n.batch.(*retryBatch); ok {
			c.batch = failingBatch{c.batch, fail}
			return
		}
		n.batch = failingBatch{n.batch, fail}
		return
	}
	if c, ok := n.step.(*retryStep); ok {
		c.step = failingStep{c.step, fail}
		return
	}
	n.step = failingStep{n.step, fail}
}

type failingStep struct {
	steps.Step
	fail FailFunc
}

func (f failingStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	if err := f.fail(ctx, row); err != nil {
		return err
	}
	return f.Step.Process(ctx, row, emit)
}

type failingBatch struct {
	real steps.Batch
	fail FailFunc
}

func (f failingBatch) Size() int { return f.real.Size() }

func (f failingBatch) Batch(ctx context.Context, rows []*steps.Row, emit steps.Emit) error {
	for _, row := range rows {
		if err := f.fail(ctx, row); err != nil {
			return err
		}
	}
	return f.real.Batch(ctx, rows, emit)
}

type rowSink func(*steps.Row)

func (s rowSink) push(_ context.Context, row *steps.Row) error { s(row); return nil }
func (s rowSink) finish(context.Context) error                 { return nil }
func (s rowSink) stop()                                        {}
