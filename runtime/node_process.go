package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

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
// row of one, so one row is buffered. run runs the step.
func (n *node) processLimited(ctx context.Context, row *steps.Row, next steps.Emit, run func(steps.Emit) error) error {
	select {
	case n.permits <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var made []*steps.Row
	err := recoverPanics(func() error {
		defer func() { <-n.permits }()
		return run(func(r *steps.Row) error { made = append(made, r); return nil })
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
	return n.failed(ctx, row, o.own, emit)
}

// emitTo returns an emit function that counts rows and stores the first error of
// next in stopped, because a step may wrap it.
func (n *node) emitTo(ctx context.Context, next steps.Emit) (emit steps.Emit, stopped *error) {
	stopped = new(error)
	return func(r *steps.Row) error {
		n.countRow(r)
		if r = n.applyErrorPolicy(ctx, r); r == nil {
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
		n.countFailure()
		return
	}
	n.count.done.Add(1)
}

// fail marks a row as failed in this step.
func (n *node) fail(row *steps.Row, err error) *steps.Row {
	n.countFailure()
	shown := n.redactor.Error(err)
	if _, nested := err.(*steps.Error); n.computes && !nested { //nolint:errorlint // as Error.Path
		shown = &redact.PublicError{Err: shown} // only the values of the row are in it
	}
	row.Err = &steps.Error{Step: n.id, Err: shown}
	return row
}

// failed applies the error policy to a row that the step failed on.
func (n *node) failed(ctx context.Context, row *steps.Row, err error, emit steps.Emit) error {
	if errors.Is(err, waves.ErrSuspended) {
		row.Err = &steps.Error{Step: n.id, Err: waves.ErrSuspended}
		return emit(row)
	}
	switch n.onError {
	case onErrorSkip:
		n.countFailure()
		stepcache.NoteDropped(ctx)
		return nil
	case onErrorContinue:
		n.countFailure()
		stepcache.NoteDropped(ctx)
		for _, slot := range n.outputs {
			row.Values[slot] = value.Unset
		}
		return emit(row)
	}
	return emit(n.fail(row, err))
}

// applyErrorPolicy applies the error policy to a row that a batch step failed itself.
// It returns nil if the row is dropped.
func (n *node) applyErrorPolicy(ctx context.Context, row *steps.Row) *steps.Row {
	if row.Err == nil || row.Err.Step != n.id {
		return row
	}
	row.Err.Err = n.redactor.Error(row.Err.Err)
	switch n.onError {
	case onErrorSkip:
		stepcache.NoteDropped(ctx)
		return nil
	case onErrorContinue:
		stepcache.NoteDropped(ctx)
		row.Err = nil
		for _, slot := range n.outputs {
			row.Values[slot] = value.Unset
		}
	}
	return row
}

// process runs the step on a row.
func (n *node) process(ctx context.Context, row *steps.Row, emit steps.Emit) (err error) {
	defer recoverTo(&err)
	if n.pass == nil {
		return n.step.Process(ctx, row, emit)
	}
	session := n.scope.Session(row.Session)
	isTurn := n.sessions && n.plan.UsesMemory()
	if isTurn && n.pass.Blocked(session) {
		return waves.ErrSuspended
	}
	ctx, waiting := n.pass.Enter(ctx, n.id, fmt.Sprint(row.Ordinal, " ", row.Number))
	if isTurn {
		waiting.Turn(session)
	}
	err = suspendable(ctx, waiting, emit, func(ctx context.Context, emit steps.Emit) error { return n.step.Process(ctx, row, emit) })
	if n.sessions && errors.Is(err, waves.ErrSuspended) {
		n.pass.Block(session)
	}
	return err
}

// suspendable runs a step on a row, or on a batch of rows, in its context. If a call of the step waits for a batch of
// its provider, the step ends with waves.ErrSuspended, and has emitted nothing since the call.
func suspendable(ctx context.Context, waiting *waves.Row, emit steps.Emit, run func(context.Context, steps.Emit) error) error {
	defer waiting.End()
	ctx = steps.WithOrigin(ctx, waiting.Call)
	err := run(ctx, func(r *steps.Row) error {
		if waiting.Suspended() {
			return waves.ErrSuspended
		}
		return emit(r)
	})
	if err != nil && !errors.Is(err, waves.ErrSuspended) {
		waiting.Fail(ctx)
	}
	if waiting.Suspended() {
		return waves.ErrSuspended
	}
	return err
}

// blockSession blocks the session of a row that an earlier step has suspended.
func blockSession(nodes []*node, row *steps.Row) {
	if n := nodes[0]; n.pass != nil && n.sessions && isSuspended(row.Err) {
		n.pass.Block(n.scope.Session(row.Session))
	}
}

// isSuspended reports whether a row waits for a batch of a provider.
func isSuspended(err *steps.Error) bool { return err != nil && errors.Is(err.Err, waves.ErrSuspended) }
