package runtime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// BudgetError ends a run that exceeds the budget of its flow.
type BudgetError struct {
	Flow  string // the flow's id
	What  string // the exceeded limit: tokens, calls, seconds or money
	Limit string // how much the document allows
	Spent string // how much the run has used
}

// Error names the flow, what ran out and the numbers.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("flow %s is over its budget: %s %s, %s are allowed", e.Flow, e.Spent, e.What, e.Limit)
}

// withBudget returns the context of one run of a flow. It is canceled when the
// flow's budget is exceeded, with a *BudgetError as its cause. The cost of a call is
// known only when it ends, so a run exceeds its budget by the calls in flight.
func (a *App) withBudget(ctx context.Context, f *spec.Flow) (context.Context, context.CancelFunc) {
	b := f.Budget
	if b == nil {
		return context.WithCancel(ctx)
	}
	var stopClock context.CancelFunc = func() {}
	if b.Seconds > 0 {
		limit := time.Duration(b.Seconds * float64(time.Second))
		over := &BudgetError{Flow: f.ID, What: "seconds", Limit: fmt.Sprint(b.Seconds), Spent: "more than " + fmt.Sprint(b.Seconds)}
		ctx, stopClock = context.WithTimeoutCause(ctx, limit, over)
	}
	ctx, stop := context.WithCancelCause(ctx)
	m := &costMeter{flow: f, stop: stop}
	ctx = steps.WithEvents(ctx, m.add, steps.EventUsage, steps.EventToolCall)
	return ctx, func() { stop(nil); stopClock() }
}

// costMeter sums up what a run uses.
type costMeter struct {
	flow *spec.Flow
	stop context.CancelCauseFunc

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
	b := m.flow.Budget
	switch {
	case b.Tokens > 0 && m.tokens > b.Tokens:
		m.exceeded("tokens", fmt.Sprint(b.Tokens), fmt.Sprint(m.tokens))
	case b.Calls > 0 && m.calls > b.Calls:
		m.exceeded("calls", fmt.Sprint(b.Calls), fmt.Sprint(m.calls))
	case b.Money > 0 && m.money > b.Money:
		m.exceeded("money", fmt.Sprint(b.Money), fmt.Sprintf("%.4g", m.money))
	}
}

func (m *costMeter) exceeded(what, limit, spent string) {
	m.stop(&BudgetError{Flow: m.flow.ID, What: what, Limit: limit, Spent: spent})
}
