package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// compile builds the steps of a flow, and of the flows that they run, around the
// shared objects that they name: what cannot be built fails before the first row.
func (a *App) compile(f *spec.Flow) (*flow, error) {
	p := newProgram(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.compile(f)
}

// flowSet is the flows that one run takes rows through: the one that was asked
// for and those that its steps run. A callee of row-wise steps alone is built
// once; one that gathers rows holds state, so each call has its own.
type flowSet struct {
	app *App

	mu    sync.Mutex
	known map[*spec.Flow]bool  // flows that were built, or are being built
	kept  map[*spec.Flow]*flow // those that several calls may share
}

func newProgram(a *App) *flowSet {
	return &flowSet{app: a, known: map[*spec.Flow]bool{}, kept: map[*spec.Flow]*flow{}}
}

// compile builds one flow; the caller holds the lock.
func (p *flowSet) compile(f *spec.Flow) (*flow, error) {
	c := &flow{spec: f, layout: layoutOf(f)}
	env := p.app.env(c.layout)
	env.Flow = p.call
	for _, item := range f.Steps {
		if err := stepAvailable(item.Step); err != nil {
			return nil, err
		}
		r, err := steps.Build(item.Step, env)
		if err != nil {
			return nil, wrapStepError(item.Step, err)
		}
		n, err := nodeOf(item.Step, r, c.layout)
		if err != nil {
			return nil, err
		}
		p.app.withCache(item.Step, n, c.layout)
		c.nodes = append(c.nodes, n)
		for _, called := range callees(item.Step) {
			if err := p.prepare(called); err != nil {
				return nil, err
			}
		}
	}
	c.stages = stagesOf(f.Steps, c.nodes)
	return c, nil
}

// prepare builds a flow that a step runs, once.
func (p *flowSet) prepare(f *spec.Flow) error {
	if p.known[f] {
		return nil
	}
	p.known[f] = true
	c, err := p.compile(f)
	if err == nil && c.isStateless() {
		p.kept[f] = c
	}
	return err
}

// flow is a flow that is ready for one more call.
func (p *flowSet) flow(f *spec.Flow) (*flow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.prepare(f); err != nil {
		return nil, err
	}
	if c, ok := p.kept[f]; ok {
		return c, nil
	}
	return p.compile(f)
}

// call runs a flow on one row of another.
func (p *flowSet) call(ctx context.Context, call steps.FlowCall, emit steps.FlowEmit) error {
	c, err := p.flow(call.Flow)
	if err != nil {
		return err
	}
	return p.app.invoke(ctx, c, call, emit)
}

// wrapStepError adds the step and its position to an error, unless the error
// names the owner of a setting, which has a position.
func wrapStepError(s spec.Step, err error) error {
	if e, ok := errors.AsType[*spec.NotAvailableError](err); ok && e.Owner != "" {
		return e
	}
	return fmt.Errorf("%sstep %s: %w", positionPrefix(s), s.EntityID(), err)
}

// env gives steps what they need of the application.
func (a *App) env(l *layout) *steps.Env {
	return &steps.Env{
		Slots: l,
		Model: func(m *spec.Model) (model.Chat, error) {
			made, ok := a.models[m]
			if !ok {
				return nil, fmt.Errorf("model %s is not part of the application", m.ID)
			}
			return made()
		},
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
		Database: a.database,
		Flow:     a.nested(),
	}
}

// nested runs flows for what is not part of a flow's program, such as a tool.
func (a *App) nested() func(context.Context, steps.FlowCall, steps.FlowEmit) error {
	return newProgram(a).call
}

// isStateless tells whether several runs may share the flow's steps.
func (f *flow) isStateless() bool {
	return !slices.ContainsFunc(f.nodes, func(n *node) bool { return n.batch != nil || n.closer != nil })
}

// invoke runs the flow on one row of another flow.
func (a *App) invoke(ctx context.Context, f *flow, call steps.FlowCall, emit steps.FlowEmit) error {
	row := f.newRow(call.Session, call.Number)
	row.Place = call.Place
	for i, ref := range f.spec.Inputs {
		row.Values[f.layout.Slot(ref.To)] = call.Inputs[i]
	}
	ctx, cancel := a.withBudget(ctx, f.spec)
	defer cancel()
	first := chain(ctx, f.stages, &callSink{flow: f, emit: emit})
	defer first.stop()
	defer cancel()
	if err := first.push(ctx, row); err != nil {
		return err
	}
	return first.finish(ctx)
}

// callSink hands an invoked flow's results to the step that invoked it.
type callSink struct {
	flow *flow
	emit steps.FlowEmit
}

func (s *callSink) push(_ context.Context, row *steps.Row) error {
	outputs := make([]any, len(s.flow.spec.Outputs))
	for i, ref := range s.flow.spec.Outputs {
		outputs[i] = row.Values[s.flow.layout.Slot(ref.To)]
	}
	return s.emit(outputs, row.Err)
}

func (s *callSink) finish(context.Context) error { return nil }

func (s *callSink) stop() {}

// positionPrefix is the place of a node followed by a colon, or nothing for one without a place.
func positionPrefix(n spec.Node) string {
	if span := n.Place().Span(); !span.IsZero() {
		return span.String() + ": "
	}
	return ""
}
