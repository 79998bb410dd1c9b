package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/steps"
)

// errStopped is what emit answers when nobody wants rows any more.
var errStopped = errors.New("no more rows are wanted")

// sink takes rows. A flow is a chain of sinks; the caller's goroutine pushes a
// row in at the front and what comes of it out at the end, so a flow without
// workers runs on that one goroutine and holds one row at a time.
type sink interface {
	// push hands a row on. Its error ends the run.
	push(ctx context.Context, row *steps.Row) error
	// finish is called once after the last row.
	finish(ctx context.Context) error
	// stop ends what runs in the background and waits for it; also after finish.
	stop()
}

// chain builds the sinks of a flow's stages in front of out.
func chain(ctx context.Context, stages []stage, out sink) sink {
	next := out
	for i := len(stages) - 1; i >= 0; i-- {
		s := stages[i]
		switch {
		case s.nodes[0].batch != nil:
			next = newBatchSink(ctx, s.nodes[0], next)
		case s.workers > 1:
			next = newParallelSink(ctx, s, next)
		default:
			next = newSerialSink(ctx, s.nodes, next)
		}
	}
	return next
}

// serialSink takes one row after the other through its steps.
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

// notifyFailed tells the steps that a failed row passes by, those of them that want to know.
func notifyFailed(nodes []*node, row *steps.Row) {
	for _, n := range nodes {
		if n.observer != nil {
			n.observer.Failed(row)
		}
	}
}

// limited runs a step that fewer workers may run than the stage has. Its rows
// go on only after its permit is given back: a permit that is held while a row
// waits for its place in the output could block the row before it for ever.
// Steps with workers are 1:1, so what is held back is one row.
func (n *node) limited(ctx context.Context, row *steps.Row, next steps.Emit) error {
	select {
	case n.permits <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var made []*steps.Row
	err := recoverPanics(func() error {
		defer func() { <-n.permits }()
		return n.step.Process(ctx, row, func(r *steps.Row) error { made = append(made, r); return nil })
	})
	for _, r := range made {
		n.tally(r)
		if err := next(r); err != nil {
			return err
		}
	}
	return n.handleError(ctx, row, outcome{own: err}, next)
}

// outcome is how a step's handling of a row ended.
type outcome struct {
	own     error // what Process returned
	stopped error // what emit had answered it before, which ends the run
}

// handleError turns a step's error into a failed row, unless the run itself ended.
func (n *node) handleError(ctx context.Context, row *steps.Row, o outcome, emit steps.Emit) error {
	switch {
	case o.stopped != nil:
		return o.stopped
	case o.own == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return n.failed(row, o.own, emit)
}

// emitTo counts what a step emits and remembers the first error that emit
// answered, because a step may wrap it.
func (n *node) emitTo(next steps.Emit) (emit steps.Emit, stopped *error) {
	stopped = new(error)
	return func(r *steps.Row) error {
		n.tally(r)
		if r = n.applyErrorPolicy(r); r == nil {
			return nil
		}
		if err := next(r); err != nil {
			*stopped = err
			return errStopped
		}
		return nil
	}, stopped
}

// tally counts a row that the step emits: steps over groups fail single rows themselves.
func (n *node) tally(r *steps.Row) {
	if r.Err != nil && r.Err.Step == n.id {
		n.count.failed.Add(1)
		return
	}
	n.count.done.Add(1)
}

// fail marks a row as failed in this step.
func (n *node) fail(row *steps.Row, err error) *steps.Row {
	n.count.failed.Add(1)
	row.Err = &steps.Error{Step: n.id, Err: err}
	return row
}

// closeAll lets the steps that hold something give it back; what they emit
// goes through the steps behind them.
func closeAll(ctx context.Context, nodes []*node, emit steps.Emit) error {
	for i, n := range nodes {
		if n.closer == nil {
			continue
		}
		pass, stopped := n.emitTo(newPipe(ctx, nodes[i+1:], emit).process)
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

// internalError begins the error of a step that panicked.
const internalError = "internal error: "

// recoverPanics turns a panic of a step into an error: a defect costs one row, not the run.
func recoverPanics(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered is what guard defers.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s%v", internalError, p)
	}
}
