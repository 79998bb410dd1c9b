package runtime

import (
	"context"
	"fmt"
	"math"
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
	return fmt.Sprintf("%s is over its budget: %s %s, %s are allowed", e.owner(), e.Spent, e.What, e.Limit)
}

// owner names the flow or the tool.
func (e *BudgetError) owner() string {
	if e.Tool != "" {
		return "tool " + e.Tool
	}
	return "flow " + e.Flow
}

// Spent is what calls of models and tools have used.
type Spent struct {
	Calls  int
	Tokens int
	Money  float64
}

// SharedBudget is one budget for several runs, such as those of the chunks of a file in several
// processes. It replaces the budget of the flow, which other processes may have read at another
// time.
type SharedBudget struct {
	Budget spec.Budget
	Began  time.Time // of the first run, from which seconds count
	// Sum returns what all runs have used together; own is what this one has used so far. It is
	// called when the run begins, and after calls of models and tools, one at a time.
	Sum func(ctx context.Context, own Spent) (Spent, error)
}

// withFlowBudget returns the context of one run of a flow, which ends when the flow's
// budget is exceeded. shared is nil for a run with a separate budget.
func withFlowBudget(ctx context.Context, f *spec.Flow, shared *SharedBudget) (context.Context, context.CancelFunc) {
	b := f.Budget
	if shared != nil {
		b = &shared.Budget
	}
	return withBudget(ctx, &BudgetError{Flow: f.ID}, b, shared)
}

// withBudget returns a context that is canceled when a budget is exceeded. Its cause is a
// copy of over, which names the owner of the budget. The cost of a call is known only
// when it ends, so a budget is exceeded by the calls in flight. b may be nil.
func withBudget(ctx context.Context, over *BudgetError, b *spec.Budget, shared *SharedBudget) (context.Context, context.CancelFunc) {
	if b == nil {
		return context.WithCancel(ctx)
	}
	var stopClock context.CancelFunc = func() {}
	const longest = math.MaxInt64 / float64(time.Second) // a longer time, such as .inf, is no limit
	if b.Seconds > 0 && b.Seconds < longest {
		limit := time.Duration(b.Seconds * float64(time.Second))
		if shared != nil {
			limit -= time.Since(shared.Began)
		}
		late := over.with("seconds", fmt.Sprint(b.Seconds), "more than "+fmt.Sprint(b.Seconds))
		ctx, stopClock = context.WithTimeoutCause(ctx, limit, late)
	}
	ctx, stop := context.WithCancelCause(ctx)
	m := &costMeter{over: over, budget: b, stop: stop}
	if shared != nil && (b.Tokens > 0 || b.Calls > 0 || b.Money > 0) {
		m.sum = func(own Spent) (Spent, error) { return shared.Sum(ctx, own) }
		m.share()
	}
	ctx = steps.WithEvents(ctx, m.add, steps.EventUsage, steps.EventToolCall)
	return ctx, func() { stop(nil); stopClock() }
}

// costMeter sums up what a run uses.
type costMeter struct {
	over   *BudgetError // names the owner of the budget
	budget *spec.Budget
	stop   context.CancelCauseFunc
	sum    func(own Spent) (Spent, error) // of all runs; nil if there is only this one

	mu      sync.Mutex
	used    Spent
	isStale bool // used has changed since the last call of sum
	isBusy  bool // sum is being called
}

// add counts one call, and stops the run if the budget is exceeded.
func (m *costMeter) add(ev steps.Event) {
	m.mu.Lock()
	m.used = Spent{Calls: m.used.Calls + 1, Tokens: m.used.Tokens + ev.Input + ev.Output, Money: m.used.Money + ev.Cost}
	if m.sum == nil {
		m.check(m.used)
	}
	m.mu.Unlock()
	if m.sum != nil {
		m.share()
	}
}

// share compares what all runs have used with the budget. Calls that end meanwhile are part of
// the next comparison, by the same goroutine.
func (m *costMeter) share() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isStale = true; m.isBusy {
		return
	}
	m.isBusy = true
	defer func() { m.isBusy = false }()
	for m.isStale {
		m.isStale = false
		own := m.used
		m.mu.Unlock()
		all, err := m.sum(own)
		m.mu.Lock()
		if err != nil {
			m.stop(fmt.Errorf("%s has a budget that is not available: %w", m.over.owner(), err))
			return
		}
		m.check(all)
	}
}

// check stops the run if the budget is exceeded. The caller holds the lock.
func (m *costMeter) check(used Spent) {
	b := m.budget
	switch {
	case b.Tokens > 0 && used.Tokens > b.Tokens:
		m.exceeded("tokens", fmt.Sprint(b.Tokens), fmt.Sprint(used.Tokens))
	case b.Calls > 0 && used.Calls > b.Calls:
		m.exceeded("calls", fmt.Sprint(b.Calls), fmt.Sprint(used.Calls))
	case b.Money > 0 && used.Money > b.Money:
		m.exceeded("money", textfmt.Amount(b.Money), textfmt.Amount(used.Money))
	}
}

func (m *costMeter) exceeded(what, limit, spent string) {
	m.stop(m.over.with(what, limit, spent))
}

// with returns the error of the same owner for one limit.
func (e *BudgetError) with(what, limit, spent string) *BudgetError {
	return &BudgetError{Flow: e.Flow, Tool: e.Tool, What: what, Limit: limit, Spent: spent}
}
