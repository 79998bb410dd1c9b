package runtime

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// flowTrace reports one run of a flow, and its steps, as operations. A nil *flowTrace
// reports nothing.
type flowTrace struct {
	ctx     context.Context // has the flow as the enclosing operation
	flow    *flow
	span    steps.Span
	outputs []outputSlot

	read, done, failed atomic.Int64
	input, output      []value.Field // of the first row and the first result
	session            string        // of the first row

	mu    sync.Mutex
	steps map[*node]*stepTrace
}

type flowTraceKey struct{}

// flowTraceOf returns the report of the flow that is run, nil if nothing observes it.
func flowTraceOf(ctx context.Context) *flowTrace {
	t, _ := ctx.Value(flowTraceKey{}).(*flowTrace)
	return t
}

// traceFlow reports that a run of a flow begins.
func traceFlow(ctx context.Context, f *flow) (context.Context, *flowTrace) {
	if !steps.Observed(ctx) {
		return ctx, nil
	}
	t := &flowTrace{flow: f, outputs: f.outputs(), steps: map[*node]*stepTrace{}}
	t.span = steps.StartSpan(ctx, &steps.Operation{Kind: steps.OperationFlow, ID: f.spec.ID, Flow: f.spec})
	t.ctx = context.WithValue(t.span.Context(ctx), flowTraceKey{}, t)
	return t.ctx, t
}

// begin counts an input row.
func (t *flowTrace) begin(row *steps.Row) {
	if t == nil || t.read.Add(1) > 1 {
		return
	}
	t.session = row.Session
	if row.Err != nil {
		return
	}
	for _, ref := range t.flow.spec.Inputs {
		t.input = appendField(t.input, ref.To, row.Values[t.flow.layout.Slot(ref.To)])
	}
}

// result counts a row that came out of the flow.
func (t *flowTrace) result(row *steps.Row) {
	if t == nil {
		return
	}
	first := t.done.Add(1) == 1
	if row.Err != nil {
		t.failed.Add(1)
		return
	}
	if first {
		for _, out := range t.outputs {
			t.output = appendField(t.output, out.variable, row.Values[out.slot])
		}
	}
}

// skipped counts a failed row that passes steps.
func (t *flowTrace) skipped(nodes []*node) {
	if t == nil {
		return
	}
	for _, n := range nodes {
		s := t.stepTrace(n)
		s.read.Add(1)
		s.failed.Add(1)
	}
}

// end reports the end of the flow and its steps.
func (t *flowTrace) end(err error) {
	if t == nil {
		return
	}
	for _, n := range t.flow.nodes {
		t.mu.Lock()
		s := t.steps[n]
		t.mu.Unlock()
		if s != nil {
			s.end()
		}
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	r := &steps.OperationResult{Err: err, Read: t.read.Load(), Done: t.done.Load(), Failed: t.failed.Load()}
	if r.Read == 1 {
		r.Input, r.Session = t.input, t.session
	}
	if r.Done == 1 {
		r.Output = t.output
	}
	t.span.End(r)
}

// stepTrace is a step in one run of its flow. It is an operation from its first row to
// the end of its last one.
type stepTrace struct {
	vars stepVariables

	read, done, failed atomic.Int64

	mu   sync.Mutex
	span steps.Span // nil before the first row
	last time.Time
}

// stepTrace returns that of a node.
func (t *flowTrace) stepTrace(n *node) *stepTrace {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.steps[n]
	if s == nil {
		s = &stepTrace{vars: newStepVariables(n, t.flow.layout)}
		t.steps[n] = s
	}
	return s
}

// step reports that a step begins, if it has not begun yet. ctx is the context of the
// goroutine that will run it; inner has the step as the enclosing operation.
func (t *flowTrace) step(ctx context.Context, n *node) (s *stepTrace, inner context.Context) {
	s = t.stepTrace(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.span == nil {
		s.span = steps.StartSpan(t.ctx, &steps.Operation{Kind: steps.OperationStep, ID: n.id, Step: n.plan, Workers: n.limit})
	}
	return s, s.span.Context(ctx)
}

// ended notes that a row or a batch of the step has ended.
func (s *stepTrace) ended(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.last) {
		s.last = at
	}
}

// end reports the end of the step.
func (s *stepTrace) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.span != nil {
		s.span.End(&steps.OperationResult{Ended: s.last, Read: s.read.Load(), Done: s.done.Load(), Failed: s.failed.Load()})
	}
}

// stepVariables are the variables of a step that observers see.
type stepVariables struct{ reads, writes variableSlots }

// variableSlots are variables with their slots.
type variableSlots []outputSlot

// newStepVariables returns the variables that a step reads and writes.
func newStepVariables(n *node, l *layout) stepVariables {
	var v stepVariables
	add := func(to *variableSlots, variable *spec.Variable) {
		if slot := l.Slot(variable); slot >= 0 {
			*to = append(*to, outputSlot{variable, slot})
		}
	}
	if n.plan.ReadsAll {
		for _, variable := range l.vars {
			add(&v.reads, variable)
		}
	}
	for _, ref := range n.plan.Reads {
		add(&v.reads, ref.To)
	}
	for _, ref := range n.plan.Step.Common().AllOutputs() {
		add(&v.writes, ref.To)
	}
	return v
}

// of returns the variables that are set in a row.
func (all variableSlots) of(row *steps.Row) []value.Field {
	var fields []value.Field
	for _, v := range all {
		fields = appendField(fields, v.variable, row.Values[v.slot])
	}
	return fields
}

// appendField appends a variable that is set.
func appendField(fields []value.Field, v *spec.Variable, x any) []value.Field {
	if x == any(value.Unset) {
		return fields
	}
	return append(fields, value.Field{Name: v.ID, Value: x})
}

const (
	// sampledBelow is the time of a row from which on its steps are measured for each
	// row. Reading the clock costs steps that only compute more than their work.
	sampledBelow = 100 * time.Microsecond
	// sampledRows is how many faster rows there are for one that is measured, on average.
	sampledRows = 16
)

// stopwatch measures the time of the steps that one goroutine runs. The time of a step
// does not include the time of later steps with the rows that it emits.
//
// Of rows that take less than sampledBelow it measures about one of sampledRows, if the
// steps wait for nothing. The distances are random, so that they match no pattern of the
// rows, and the time of a measured row counts for the rows since the one before.
type stopwatch struct {
	samples bool     // fast rows are sampled
	weight  int64    // how many rows the time of the row counts for; 0 if it is not measured
	gap     int64    // the distance to the next measured row
	passed  int64    // rows since the last measured one, the current one included
	of      *counter // the step that runs; nil if none does
	since   time.Time
	spent   time.Duration // the time of the row so far
}

// newStopwatch returns a stopwatch for steps; nil if their times are not measured.
func newStopwatch(nodes []*node) *stopwatch {
	if len(nodes) == 0 || !nodes[0].timed {
		return nil
	}
	w := &stopwatch{samples: true, gap: 1}
	for _, n := range nodes {
		w.samples = w.samples && !n.cached && n.plan.IsQuick()
	}
	return w
}

// begin begins a row, or a batch of rows.
func (w *stopwatch) begin() {
	if w == nil {
		return
	}
	w.weight = 0
	if w.passed++; w.passed >= w.gap {
		w.weight, w.passed, w.spent = w.passed, 0, 0
	}
}

// end ends the row.
func (w *stopwatch) end() {
	if w == nil || w.weight == 0 {
		return
	}
	w.weight, w.gap = 0, 1
	if w.samples && w.spent < sampledBelow {
		w.gap += rand.Int64N(2*sampledRows - 1)
	}
}

// switchTo stops the clock of the current step, starts the clock of another one, and
// returns the former; nil for none.
func (w *stopwatch) switchTo(next *counter) (from *counter) {
	if w == nil || w.weight == 0 {
		return nil
	}
	now := time.Now()
	if w.of != nil {
		took := now.Sub(w.since)
		w.spent += took
		w.of.time.Add(int64(took) * w.weight)
	}
	from, w.of, w.since = w.of, next, now
	return from
}

// wantsStepEvents reports whether the starts and ends of steps are reported.
func wantsStepEvents(ctx context.Context) bool {
	return steps.Wanted(ctx, steps.EventStepStart) || steps.Wanted(ctx, steps.EventStepEnd)
}

// reportStep reports that a step begins to process a row, and returns a function that
// reports the end, with the error of the step, when it is first called.
func reportStep(ctx context.Context, id string, row *steps.Row) func(error) {
	ev := steps.Event{Kind: steps.EventStepStart, Step: id, Session: row.Session, Row: row.Number}
	steps.Report(ctx, ev)
	ended := false
	return func(err error) {
		if ended {
			return
		}
		ended = true
		ev.Kind, ev.Err = steps.EventStepEnd, err
		steps.Report(ctx, ev)
	}
}

// reportBatch reports that a batch step begins to process rows, and returns a function
// that reports the end for each of them, with the error of the batch. failed notes the
// error of a single row.
func reportBatch(ctx context.Context, id string, rows []*steps.Row) (failed func(*steps.Row), end func(error)) {
	ends := make([]func(error), len(rows))
	numbers := make([]int64, len(rows)) // rows must not be read after they were emitted
	for i, row := range rows {
		ends[i], numbers[i] = reportStep(ctx, id, row), row.Number
	}
	errs := map[int64]error{}
	failed = func(r *steps.Row) { errs[r.Number] = r.Err }
	return failed, func(err error) {
		for i, end := range ends {
			if own := errs[numbers[i]]; own != nil {
				end(own)
				continue
			}
			end(err)
		}
	}
}

// failureOf returns why a row that the step emits failed in it, nil if it did not.
func (n *node) failureOf(r *steps.Row) error {
	if r.Err != nil && r.Err.Step == n.id {
		return r.Err
	}
	return nil
}
