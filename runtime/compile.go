package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// compile builds the steps of a flow, and of the flows that they run, with the
// shared objects that they refer to. What cannot be built fails before the first
// row.
func (a *App) compile(f *spec.Flow) (*flow, error) {
	set := newFlowSet(a)
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.compile(f)
}

// flowSet has the compiled flows of one run: the flow that is run and those that
// its steps run. A called flow without state is compiled once; one with batch
// steps has state, so it is compiled for each call.
type flowSet struct {
	app      *App
	failures atomic.Int64 // rows that failed in a step, also if the step drops them

	mu     sync.Mutex
	known  map[*spec.Flow]bool  // the flows that were compiled, or are being compiled
	shared map[*spec.Flow]*flow // the flows that all calls share
}

func newFlowSet(a *App) *flowSet {
	return &flowSet{app: a, known: map[*spec.Flow]bool{}, shared: map[*spec.Flow]*flow{}}
}

// compile compiles one flow; the caller holds the lock.
func (s *flowSet) compile(f *spec.Flow) (*flow, error) {
	c := &flow{spec: f, layout: newLayout(f)}
	env := s.app.env(c.layout)
	env.Flow, env.Failures = s.call, s.failures.Load
	for _, p := range f.Plan().Steps {
		n, err := s.app.buildNode(p, env, c.layout)
		if err != nil {
			return nil, err
		}
		n.failures = &s.failures
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
			return tool.Client(s, tool.Options{HTTP: a.serviceHTTP(), Secret: a.secret, Getenv: a.Getenv, Policy: a.opts.Policy})
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
