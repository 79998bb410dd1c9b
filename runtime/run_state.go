package runtime

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/steps"
)

// run is one run of a flow.
type run struct {
	flow     *flow
	part     func([]stage) []stage // returns the stages of the flow that run; nil for all
	stages   []stage               // those that run
	progress *Progress
	listen   func(steps.Event)
	kinds    []steps.EventKind
	outputs  []outputSlot       // the flow's
	mayDefer func(*Result) bool // see WithDeferFailed; nil if each failed row may wait
	timed    bool               // the time of each step is measured
	partial  func() string      // see WithPartialInput; may be nil
	replayed atomic.Bool        // rows of an earlier run were taken from a journal

	observers []steps.Observer // see WithObserver
	trace     *flowTrace       // nil if nothing observes the run

	id             string           // see WithRunID
	checkpoints    checkpoint.Store // nil if nothing is recorded
	checkpointFlow string           // the id of the flow that they are of

	outage time.Duration // see WithOutage

	budget *SharedBudget // see WithSharedBudget; nil for a budget of this run
}

// partialReason returns why the run may miss a part of its input. The journal does not record rows that a
// step with on_error dropped or continued without outputs; later steps may make other entries of them, or
// none.
func (r *run) partialReason() string {
	if r.partial != nil {
		if reason := r.partial(); reason != "" {
			return reason
		}
	}
	if _, isJournal := r.checkpoints.(*checkpoint.Journal); !isJournal || !r.replayed.Load() {
		return ""
	}
	for p := range r.flow.spec.Plan().All() {
		if policy := errorPolicy(p.Step.Common().OnError); policy == onErrorSkip || policy == onErrorContinue {
			return steps.MayHaveLost
		}
	}
	return ""
}

// RunOption changes one run.
type RunOption func(*run)

// feed pushes all inputs through the chain.
func (r *run) feed(ctx context.Context, rows iter.Seq[Input], first sink) error {
	number := int64(0)
	made := r.flow.newRowAllocator()
	for in := range rows {
		number++
		if in.Number > 0 {
			number = in.Number
		}
		r.progress.rows.Add(1)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		row := made.fromInput(ctx, in, number)
		r.trace.begin(row)
		if err := first.push(ctx, row); err != nil {
			return err
		}
	}
	// The rows may have ended because the caller canceled the run. A budget that the last row
	// exceeds has nothing left to stop.
	if cause := context.Cause(ctx); cause != nil && !isBudget(cause) {
		return cause
	}
	return first.finish(ctx)
}

// isBudget reports whether a run ends because it is over its budget.
func isBudget(err error) bool {
	_, over := errors.AsType[*BudgetError](err)
	return over
}
