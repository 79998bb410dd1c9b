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
	m := &costMeter{flow: f, stop: stop, prices: a.stepPrices(), models: a.modelPrices()}
	ctx = steps.WithEvents(ctx, m.add, steps.EventUsage, steps.EventToolCall)
	return ctx, func() { stop(nil); stopClock() }
}

// stepPrices returns the prices of the model of each step of the application.
func (a *App) stepPrices() map[string]*spec.Prices {
	prices := map[string]*spec.Prices{}
	for s := range stepPlans(a.spec) {
		if m := s.Model(); m != nil {
			prices[s.Step.EntityID()] = m.Base().Prices
		} else if m := s.Embedder(); m != nil {
			prices[s.Step.EntityID()] = m.Prices
		}
	}
	return prices
}

// modelPrices returns the prices of each model by its id: fallbacks, and models that
// a memory calls, do not have the prices of the step's model.
func (a *App) modelPrices() map[string]*spec.Prices {
	prices := map[string]*spec.Prices{}
	for _, doc := range a.spec.Documents() {
		for _, m := range doc.Models {
			prices[m.EntityID()] = m.Base().Prices
		}
	}
	return prices
}

// costMeter sums up what a run uses.
type costMeter struct {
	flow   *spec.Flow
	stop   context.CancelCauseFunc
	prices map[string]*spec.Prices // by step
	models map[string]*spec.Prices // by the ids of models

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
	p := m.prices[ev.Step]
	if ev.Model != "" {
		p = m.models[ev.Model]
	}
	if p != nil {
		m.money += (float64(ev.Input)*p.Input + float64(ev.Output)*p.Output) / 1e6
	}
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
