package runtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// BudgetError ends a run that exceeds the budget of its flow, or a call that exceeds the
// budget of its FlowTool.
type BudgetError struct {
	Flow  string // the flow's id; empty for the budget of a tool
	Tool  string // the tool's id; empty for the budget of a flow
	What  string // the exceeded limit: tokens, calls, seconds or money
	Limit string // how much the document allows
	Spent string // how much the run has used
}

// Error names the flow or the tool, what ran out and the numbers.
func (e *BudgetError) Error() string {
	owner := "flow " + e.Flow
	if e.Tool != "" {
		owner = "tool " + e.Tool
	}
	return fmt.Sprintf("%s is over its budget: %s %s, %s are allowed", owner, e.Spent, e.What, e.Limit)
}

// withFlowBudget returns the context of one run of a flow, which ends when the flow's
// budget is exceeded.
func withFlowBudget(ctx context.Context, f *spec.Flow) (context.Context, context.CancelFunc) {
	return withBudget(ctx, &BudgetError{Flow: f.ID}, f.Budget)
}

// withBudget returns a context that is canceled when a budget is exceeded, with a copy of
// over, which names the owner of the budget, as its cause. The cost of a call is known
// only when it ends, so a budget is exceeded by the calls in flight. b may be nil.
func withBudget(ctx context.Context, over *BudgetError, b *spec.Budget) (context.Context, context.CancelFunc) {
	if b == nil {
		return context.WithCancel(ctx)
	}
	var stopClock context.CancelFunc = func() {}
	if b.Seconds > 0 {
		limit := time.Duration(b.Seconds * float64(time.Second))
		late := over.with("seconds", fmt.Sprint(b.Seconds), "more than "+fmt.Sprint(b.Seconds))
		ctx, stopClock = context.WithTimeoutCause(ctx, limit, late)
	}
	ctx, stop := context.WithCancelCause(ctx)
	m := &costMeter{over: over, budget: b, stop: stop}
	ctx = steps.WithEvents(ctx, m.add, steps.EventUsage, steps.EventToolCall)
	return ctx, func() { stop(nil); stopClock() }
}

// costMeter sums up what a run uses.
type costMeter struct {
	over   *BudgetError // names the owner of the budget
	budget *spec.Budget
	stop   context.CancelCauseFunc

	mu     sync.Mutex
	tokens int
	calls  int
	money  float64
}

// add counts one call, and stops the run if the budget is exceeded.
func (m *costMeter) add(ev steps.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.tokens += ev.Input + ev.Output
	m.money += ev.Cost
	b := m.budget
	switch {
	case b.Tokens > 0 && m.tokens > b.Tokens:
		m.exceeded("tokens", fmt.Sprint(b.Tokens), fmt.Sprint(m.tokens))
	case b.Calls > 0 && m.calls > b.Calls:
		m.exceeded("calls", fmt.Sprint(b.Calls), fmt.Sprint(m.calls))
	case b.Money > 0 && m.money > b.Money:
		m.exceeded("money", textfmt.Amount(b.Money), textfmt.Amount(m.money))
	}
}

func (m *costMeter) exceeded(what, limit, spent string) {
	m.stop(m.over.with(what, limit, spent))
}

// with returns the error of the same owner for one limit.
func (e *BudgetError) with(what, limit, spent string) *BudgetError {
	return &BudgetError{Flow: e.Flow, Tool: e.Tool, What: what, Limit: limit, Spent: spent}
}
