package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/steps"
)

// errStopped is returned by emit when no more rows are needed.
var errStopped = errors.New("no more rows are wanted")

// sink receives rows. A flow is a chain of sinks. The caller's goroutine pushes a row
// into the first one and its results through all others, so a flow without workers
// runs on one goroutine and has one row at a time.
type sink interface {
	// push processes a row. Its error ends the run.
	push(ctx context.Context, row *steps.Row) error
	// finish is called once after the last row.
	finish(ctx context.Context) error
	// stop stops background work and waits for its end. It is called also after
	// finish.
	stop()
}

// chain returns the sinks of some stages, which end in out.
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

// notifyFailed notifies each FailureObserver among the nodes of a failed row that
// skips it.
func notifyFailed(nodes []*node, row *steps.Row) {
	for _, n := range nodes {
		if n.observer != nil {
			n.observer.Failed(row)
		}
	}
}

// processLimited runs a step that has a lower limit than its stage has workers. The
// rows are emitted after the permit is released: a worker that waits for its place in
// the output with a permit could block an earlier row forever. Such a step makes one
// row of one, so one row is buffered.
func (n *node) processLimited(ctx context.Context, row *steps.Row, next steps.Emit) error {
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
		n.countRow(r)
		if err := next(r); err != nil {
			return err
		}
	}
	return n.handleError(ctx, row, outcome{own: err}, next)
}

// outcome is how the processing of a row by a step ended.
type outcome struct {
	own     error // returned by Process
	stopped error // returned by emit before, which ends the run
}

// handleError converts the error of a step to a failed row, unless the run has ended.
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

// emitTo returns an emit function that counts rows and stores the first error of
// next in stopped, because a step may wrap it.
func (n *node) emitTo(next steps.Emit) (emit steps.Emit, stopped *error) {
	stopped = new(error)
	return func(r *steps.Row) error {
		n.countRow(r)
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

// countRow counts a row that the step emits. Batch steps may fail single rows.
func (n *node) countRow(r *steps.Row) {
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

// closeAll closes the steps that have state. The rows that they emit go through the
// steps after them.
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

// internalError is the prefix of the error of a step that panicked.
const internalError = "internal error: "

// recoverPanics converts a panic of a step to an error: a bug fails one row, not the
// run.
func recoverPanics(f func() error) (err error) {
	defer recoverTo(&err)
	return f()
}

// recoverTo converts a panic to an error; it must be deferred.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s%v", internalError, p)
	}
}
