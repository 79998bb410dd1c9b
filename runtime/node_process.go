package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	ctx, waiting := n.pass.Enter(ctx, n.id, row.Ordinal, fmt.Sprint(row.Ordinal, " ", row.Number))
	if n.active != nil {
		if err := waiting.Limit(ctx, n.active); err != nil {
			waiting.End()
			return err
		}
	}
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
		return waiting.Leave(func() error { return emit(r) })
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

// tracedStep reports the rows and batches of a step for one goroutine.
type tracedStep struct {
	trace *stepTrace
	node  *node
	ctx   context.Context // has the step as the enclosing operation
}

// traceStep returns the report of a step in a flow, for the goroutine with the context ctx.
func traceStep(ctx context.Context, t *flowTrace, n *node) tracedStep {
	trace, inner := t.step(ctx, n)
	return tracedStep{trace: trace, node: n, ctx: inner}
}

// process runs the step on a row. The time of a row does not include that of later
// steps: it ends when the step emits its last row, or with the error of the step.
func (s *tracedStep) process(row *steps.Row, emit steps.Emit) error {
	s.trace.read.Add(1)
	counted := func(r *steps.Row) error {
		s.countRow(r)
		return emit(r)
	}
	if s.node.cached { // an observedStep in the cache reports the rows that are not cached
		return s.processCached(row, counted)
	}
	o := &rowTrace{node: s.node, vars: &s.trace.vars}
	ctx := o.start(s.ctx, row)
	err := s.node.process(ctx, row, o.emitTo(counted))
	s.trace.ended(o.end(err))
	s.countError(o.own(err))
	return err
}

// processCached runs a step that has a cache. If the results are from the cache, that is reported as an operation.
func (s *tracedStep) processCached(row *steps.Row, counted steps.Emit) error {
	if !steps.ObservedKind(s.ctx, steps.OperationCacheHit) {
		err := s.node.process(s.ctx, row, counted)
		s.trace.ended(time.Now())
		s.countError(err)
		return err
	}
	probe := &cacheProbe{}
	o := &rowTrace{node: s.node, vars: &s.trace.vars}
	op := o.operation(row)
	op.Kind, op.Begun = steps.OperationCacheHit, time.Now()
	err := s.node.process(context.WithValue(s.ctx, cacheProbeKey{}, probe), row, o.emitTo(counted))
	s.trace.ended(time.Now())
	s.countError(err)
	if !probe.missed && s.ctx.Err() == nil {
		o.span = steps.StartSpan(s.ctx, op)
		o.end(err)
	}
	return err
}

// cacheProbe notes whether a step behind a cache was run.
type cacheProbe struct{ missed bool }

type cacheProbeKey struct{}

func (s *tracedStep) countRow(r *steps.Row) {
	s.trace.done.Add(1)
	if s.node.failureOf(r) != nil {
		s.trace.failed.Add(1)
	}
}

// countError counts a row that the step returned an error for.
func (s *tracedStep) countError(err error) {
	if err != nil {
		s.trace.failed.Add(1)
	}
}

// rowTrace reports the processing of a row as an operation.
type rowTrace struct {
	node    *node
	vars    *stepVariables
	span    steps.Span
	result  steps.OperationResult
	emitted time.Time
	stopped bool // emit returned an error, which ends the run
}

// start reports the start and returns the context of what the step calls.
func (o *rowTrace) start(ctx context.Context, row *steps.Row) context.Context {
	o.span = steps.StartSpan(ctx, o.operation(row))
	return o.span.Context(ctx)
}

func (o *rowTrace) operation(row *steps.Row) *steps.Operation {
	return &steps.Operation{Kind: steps.OperationRow, ID: o.node.id, Step: o.node.plan, Session: row.Session, Row: row.Number, Input: o.vars.reads.of(row)}
}

// emitTo returns an emit function that notes what the step emits.
func (o *rowTrace) emitTo(emit steps.Emit) steps.Emit {
	return func(r *steps.Row) error {
		o.emitted = time.Now()
		o.result.Done++
		if err := o.node.failureOf(r); err != nil {
			o.result.Failed++
			o.result.Err = err
		} else if r.Err == nil {
			o.result.Output = o.vars.writes.of(r)
		}
		err := emit(r)
		o.stopped = o.stopped || err != nil
		return err
	}
}

// own returns the error of the step itself.
func (o *rowTrace) own(err error) error {
	if o.stopped {
		return nil
	}
	return err
}

// end reports the end, and returns when that was.
func (o *rowTrace) end(err error) time.Time {
	r := &o.result
	if err = o.own(err); err != nil {
		r.Err, r.Ended = err, time.Now()
		r.Failed++
	} else if r.Ended = o.emitted; r.Done == 0 {
		r.Ended = time.Now()
	}
	o.span.End(r)
	return r.Ended
}

// observedStep is a step behind a cache: only rows that are not cached are reported.
type observedStep struct {
	node *node
	step steps.Step
}

// Process runs the step, and reports the row if the run has observers.
func (s *observedStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) (err error) {
	t := flowTraceOf(ctx)
	if t == nil {
		return s.step.Process(ctx, row, emit)
	}
	if probe, ok := ctx.Value(cacheProbeKey{}).(*cacheProbe); ok {
		probe.missed = true
		ctx = context.WithValue(ctx, cacheProbeKey{}, (*cacheProbe)(nil)) // flows within the step have other caches
	}
	o := &rowTrace{node: s.node, vars: &t.stepTrace(s.node).vars}
	inner := o.start(ctx, row)
	defer func() { o.end(err) }()
	return s.step.Process(inner, row, o.emitTo(emit))
}

// batch runs a batch step on a group of rows.
func (s *tracedStep) batch(rows []*steps.Row, emit steps.Emit, run func(context.Context, steps.Emit) error) error {
	n := int64(len(rows))
	s.trace.read.Add(n)
	ctx, end := steps.Observe(s.ctx, &steps.Operation{Kind: steps.OperationBatch, ID: s.node.id, Step: s.node.plan, Rows: len(rows)})
	r, stopped := &steps.OperationResult{}, false
	err := run(ctx, func(row *steps.Row) error {
		r.Ended = time.Now()
		r.Done++
		if err := s.node.failureOf(row); err != nil {
			r.Failed++
			r.Err = err
		}
		s.countRow(row)
		err := emit(row)
		stopped = stopped || err != nil
		return err
	})
	if err != nil && !stopped {
		r.Err, r.Failed, r.Ended = err, n, time.Now()
		s.trace.failed.Add(n)
	}
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	s.trace.ended(r.Ended)
	end(r)
	return err
}
