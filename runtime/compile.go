package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/auditlog"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// compile builds the steps of a flow, and of the flows that they run, with the
// shared objects that they refer to. What cannot be built fails before the first
// row. rowsAtOnce is how many rows wait for batches of providers at a time; 0 for as many as the steps declare.
func (a *App) compile(f *spec.Flow, rowsAtOnce int) (*flow, error) {
	set := newFlowSet(a)
	set.rowsAtOnce = rowsAtOnce
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.compile(f)
}

// flowSet has the compiled flows of one run: the flow that is run and those that
// its steps run. A called flow without state is compiled once; one with batch
// steps has state, so it is compiled for each call.
type flowSet struct {
	app        *App
	rowsAtOnce int          // of the flow that is run
	failures   atomic.Int64 // rows that failed in a step, also if the step drops them

	mu     sync.Mutex
	known  map[*spec.Flow]bool  // the flows that were compiled, or are being compiled
	shared map[*spec.Flow]*flow // the flows that all calls share
}

func newFlowSet(a *App) *flowSet {
	return &flowSet{app: a, known: map[*spec.Flow]bool{}, shared: map[*spec.Flow]*flow{}}
}

// compile compiles one flow; the caller holds the lock.
func (s *flowSet) compile(f *spec.Flow) (*flow, error) {
	c, rowsAtOnce := &flow{spec: f, layout: newLayout(f)}, s.rowsAtOnce
	s.rowsAtOnce = 0 // a flow that is called has one row
	env := s.app.env(c.layout)
	env.Flow, env.Failures = s.call, s.failures.Load
	for _, p := range f.Plan().Steps {
		n, err := s.app.buildNode(p, env, c.layout)
		if err != nil {
			return nil, err
		}
		n.failures = &s.failures
		n.wait(rowsAtOnce)
		c.nodes = append(c.nodes, n)
		for _, called := range p.Flows() {
			if err := s.prepare(called); err != nil {
				return nil, err
			}
		}
	}
	c.stages = newStages(c.nodes)
	return c, nil
}

// buildNode builds a step with its retry policy and its cache.
func (a *App) buildNode(p *spec.StepPlan, env *steps.Env, l *layout) (*node, error) {
	r, err := steps.Build(p.Step, env)
	if err != nil {
		return nil, wrapStepError(p.Step, withPosition(p.Step, err))
	}
	n, err := newNode(p, r, l)
	if err != nil {
		return nil, err
	}
	n.redactor = a.opts.Redactor
	a.addCache(n, l)
	return n, nil
}

// prepare compiles a flow that a step runs, once.
func (s *flowSet) prepare(f *spec.Flow) error {
	if s.known[f] {
		return nil
	}
	s.known[f] = true
	c, err := s.compile(f)
	if err == nil && c.isStateless() {
		s.shared[f] = c
	}
	return err
}

// flow returns a flow that is ready for one more call.
func (s *flowSet) flow(f *spec.Flow) (*flow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prepare(f); err != nil {
		return nil, err
	}
	if c, ok := s.shared[f]; ok {
		return c, nil
	}
	return s.compile(f)
}

// call runs a flow on one row of another flow.
func (s *flowSet) call(ctx context.Context, call steps.FlowCall, emit steps.FlowEmit) error {
	c, err := s.flow(call.Flow)
	if err != nil {
		return err
	}
	return s.app.invoke(ctx, c, call, emit)
}

// wrapStepError adds the step and its position to an error, unless the error
// names the owner of a setting, which has a position.
func wrapStepError(s spec.Step, err error) error {
	if e, ok := errors.AsType[*spec.NotAvailableError](err); ok && e.Owner != "" {
		return e
	}
	return fmt.Errorf("%sstep %s: %w", positionPrefix(s), s.EntityID(), err)
}

// env returns what steps need of the application.
func (a *App) env(l *layout) *steps.Env {
	return &steps.Env{
		Slots:    l,
		Model:    a.models.chat.get,
		Embedder: a.embedder,
		Memory: func(m *spec.Memory) (*memory.Memory, error) {
			shared, ok := a.memories[m.ID]
			if !ok {
				return nil, fmt.Errorf("memory %s is not part of the application", m.ID)
			}
			return shared, nil
		},
		Tool: func(t spec.Tool) (tool.Tool, error) {
			made, ok := a.tools[t.EntityID()]
			if !ok {
				return nil, fmt.Errorf("tool %s is not part of the application", t.EntityID())
			}
			return made()
		},
		Approve:  a.opts.Approve,
		Audit:    a.audit,
		Database: a.database,
		HTTP: func(s tool.Service) (*http.Client, error) {
			return tool.Client(s, a.toolOptions(a.serviceHTTP()))
		},
		Index:  a.index,
		Secret: a.secret,
		Ranker: a.ranker,
		Flow:   a.nested(),
	}
}

// nested returns a function that runs flows for a caller outside a flow, such as
// a tool.
func (a *App) nested() func(context.Context, steps.FlowCall, steps.FlowEmit) error {
	return newFlowSet(a).call
}

// isStateless reports whether several runs may share the flow's steps.
func (f *flow) isStateless() bool {
	return !slices.ContainsFunc(f.nodes, func(n *node) bool { return n.batch != nil || n.closer != nil })
}

// invoke runs the flow on one row of another flow.
func (a *App) invoke(ctx context.Context, f *flow, call steps.FlowCall, emit steps.FlowEmit) (err error) {
	row := f.newRow(call.Session, call.Number)
	row.Ordinal = call.Ordinal
	for i, ref := range f.spec.Inputs {
		row.Values[f.layout.Slot(ref.To)] = call.Inputs[i]
	}
	ctx, cancel := withFlowBudget(a.withAuditFlow(ctx, f.spec), f.spec, nil)
	defer cancel()
	ctx, trace := traceFlow(ctx, f)
	defer func() { trace.end(err) }()
	trace.begin(row)
	first := chain(ctx, f.stages, &callSink{flow: f, emit: emit, trace: trace})
	defer first.stop()
	defer cancel()
	if err := first.push(ctx, row); err != nil {
		return err
	}
	return first.finish(ctx)
}

// callSink passes the results of a called flow to the step that calls it.
type callSink struct {
	flow  *flow
	emit  steps.FlowEmit
	trace *flowTrace
}

func (s *callSink) push(_ context.Context, row *steps.Row) error {
	s.trace.result(row)
	outputs := make([]any, len(s.flow.spec.Outputs))
	for i, ref := range s.flow.spec.Outputs {
		outputs[i] = row.Values[s.flow.layout.Slot(ref.To)]
	}
	return s.emit(outputs, row.Err)
}

func (s *callSink) finish(context.Context) error { return nil }

func (s *callSink) stop() {}

// auditor returns what writes the audit log of a memory, nil for none. A store that
// replaces the declared one, as in tests, has no log.
func (a *App) auditor(m *spec.Memory) memory.Auditor {
	if m.AuditLog == "" || a.opts.Store != nil {
		return nil
	}
	path := a.opts.Policy.Output(m.AuditLog)
	if !filepath.IsAbs(path) && path == m.AuditLog {
		path = filepath.Join(folderOf(m), path)
	}
	if err := a.opts.Policy.Write(path); err != nil {
		return func(memory.AuditRecord) error { return err }
	}
	log := auditlog.New(path)
	return func(r memory.AuditRecord) error { return log.Append(r) }
}

// withAuditFlow returns a context for the steps of a flow, whose calls of tools are recorded.
func (a *App) withAuditFlow(ctx context.Context, f *spec.Flow) context.Context {
	if a.audit == nil {
		return ctx
	}
	return tool.WithAuditFlow(ctx, f.ID)
}

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

// toolOptions returns what clients of the servers of tools use.
func (a *App) toolOptions(client *http.Client) tool.Options {
	return tool.Options{HTTP: client, Secret: a.secret, Getenv: a.Getenv, Policy: a.opts.Policy, AWS: a.opts.Parts.AWS, Supervisor: a.opts.Supervisor, Learn: a.opts.Redactor.Add}
}
