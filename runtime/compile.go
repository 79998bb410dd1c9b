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

// compile builds the steps of a flow around the shared objects that they name.
func (a *App) compile(f *spec.Flow) (*flow, error) {
	c := &flow{spec: f, layout: layoutOf(f)}
	env := a.env(c.layout)
	for _, item := range f.Steps {
		if err := stepAvailable(item.Step); err != nil {
			return nil, err
		}
		r, err := steps.Build(item.Step, env)
		if err != nil {
			return nil, inStep(item.Step, err)
		}
		n, err := nodeOf(item.Step, r, c.layout)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	c.stages = stagesOf(f.Steps, c.nodes)
	return c, nil
}

// inStep says in which step an error lies. One that names the place of its cause needs no second.
func inStep(s spec.Step, err error) error {
	var notYet *NotAvailableError
	if errors.As(err, &notYet) {
		return notYet
	}
	return fmt.Errorf("%sstep %s: %w", at(s), s.EntityID(), err)
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
		Flow: a.nested(),
	}
}

// nested runs other flows for a flow's InvokeFlow steps. A callee of row-wise
// steps alone is compiled once for the caller's run; one that gathers rows
// holds state, so each call has its own.
func (a *App) nested() func(context.Context, steps.FlowCall, steps.FlowEmit) error {
	var mu sync.Mutex
	kept := map[*spec.Flow]*flow{}
	compiled := func(f *spec.Flow) (*flow, error) {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := kept[f]; ok {
			return c, nil
		}
		c, err := a.compile(f)
		if err == nil && c.stateless() {
			kept[f] = c
		}
		return c, err
	}
	return func(ctx context.Context, call steps.FlowCall, emit steps.FlowEmit) error {
		c, err := compiled(call.Flow)
		if err != nil {
			return err
		}
		return a.invoke(ctx, c, call, emit)
	}
}

// stateless tells whether several runs may share the flow's steps.
func (f *flow) stateless() bool {
	return !slices.ContainsFunc(f.nodes, func(n *node) bool { return n.batch != nil || n.closer != nil })
}

// invoke runs the flow on one row of another flow.
func (a *App) invoke(ctx context.Context, f *flow, call steps.FlowCall, emit steps.FlowEmit) error {
	row := f.blank(call.Session, call.Number)
	for i, ref := range f.spec.Inputs {
		row.Values[f.layout.Slot(ref.To)] = call.Inputs[i]
	}
	ctx, cancel := a.within(ctx, f.spec)
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

// at is the place of a node followed by a colon, or nothing for one without a place.
func at(n spec.Node) string {
	if span := n.Place().Span(); !span.IsZero() {
		return span.String() + ": "
	}
	return ""
}
