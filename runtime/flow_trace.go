package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

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
