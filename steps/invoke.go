package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// invokeTool calls a tool for each row (steps.md 4).
type invokeTool struct {
	id      string
	tool    tool.Tool
	inputs  []inputBinding
	outputs []outputBinding
	whole   bool // the tool has one output, a record: a result that is an object may be it
}

// inputBinding is an input of the tool and the variable behind it.
type inputBinding struct {
	binding
	declared *spec.Variable
}

// outputBinding is an output of the tool and the variable that takes it.
type outputBinding struct {
	binding
	optional bool // the result may lack it
}

func buildInvokeTool(s *spec.InvokeTool, env *Env) (Runner, error) {
	if s.Tool.To == nil || env.Tool == nil {
		return nil, fmt.Errorf("the tool is not linked")
	}
	t, err := env.singleTool(s.Tool.To)
	if err != nil {
		return nil, err
	}
	step := &invokeTool{id: s.ID, tool: t}
	if err := step.bindInputs(s, env); err != nil {
		return nil, err
	}
	outs, err := env.bindings(s.OutputBindings)
	declared := resultsOf(s.Tool.To, outs)
	for _, b := range outs {
		v := variableNamed(declared, b.name)
		if v == nil {
			return nil, fmt.Errorf("tool %s has no output %q", t.Info().ID, b.name)
		}
		step.outputs = append(step.outputs, outputBinding{b, v.IsOptional() || b.slot.of.IsOptional()})
	}
	step.whole = len(declared) == 1 && (declared[0].Type.IsRecord() || declared[0].Type.Custom != nil)
	return step, err
}

// bindInputs pairs the tool's inputs with the variables that are bound to them.
func (s *invokeTool) bindInputs(declared *spec.InvokeTool, env *Env) error {
	ins, err := env.bindings(declared.InputBindings)
	if err != nil {
		return err
	}
	for _, b := range ins {
		v := variableNamed(s.tool.Info().Inputs, b.name)
		if v == nil {
			return fmt.Errorf("tool %s has no input %q", s.tool.Info().ID, b.name)
		}
		s.inputs = append(s.inputs, inputBinding{b, v})
	}
	return nil
}

// singleTool is the shared tool of a declaration, or the only one that it stands for.
func (e *Env) singleTool(declared spec.Tool) (tool.Tool, error) {
	t, err := e.Tool(declared)
	set, many := t.(tool.Set)
	if err != nil || !many {
		return t, err
	}
	tools, err := set.Tools(context.Background()) // it has a time limit of its own
	if err == nil && len(tools) != 1 {            // the checker holds it (QT436)
		err = fmt.Errorf("tool %s stands for %d tools; a step calls one, which its tools: names", declared.EntityID(), len(tools))
	}
	if err != nil {
		return nil, err
	}
	return tools[0], nil
}

// resultsOf returns the parts of a tool's result; where they are not declared,
// those that are bound.
func resultsOf(t spec.Tool, bound []binding) []*spec.Variable {
	vars, declared := t.Results()
	if declared {
		return vars
	}
	for _, b := range bound {
		vars = append(vars, &spec.Variable{ID: b.name, Type: b.slot.of.Type})
	}
	return vars
}

// variableNamed is the variable of that id, nil where there is none.
func variableNamed(vars []*spec.Variable, id string) *spec.Variable {
	for _, v := range vars {
		if v != nil && v.ID == id {
			return v
		}
	}
	return nil
}

// Process calls the tool and sets the bound outputs.
func (s *invokeTool) Process(ctx context.Context, row *Row, emit Emit) error {
	args, err := s.arguments(row)
	if err != nil {
		return err
	}
	name := s.tool.Info().Name
	ev := Event{Kind: EventToolCall, Step: s.id, Session: row.Session, Row: row.Number, Tool: name}
	if wanted(ctx, EventToolCall) {
		ev.Text = string(value.JSON(args))
		Report(ctx, ev)
	}
	result, err := s.tool.Call(tool.WithCaller(withCallContext(ctx, s.id, row), tool.Caller{Step: s.id, Session: row.Session, Row: row.Number}), args)
	ev.Kind, ev.Text, ev.Err = EventToolResult, value.Text(result), err
	Report(ctx, ev)
	if err != nil {
		return err
	}
	if err := s.setOutputs(row, value.FromGo(result)); err != nil {
		return fmt.Errorf("tool %s: %w", name, err)
	}
	return emit(row)
}

// arguments gathers the bound inputs: an optional one that is unset or null is
// left out, a required one that is null is passed as null.
func (s *invokeTool) arguments(row *Row) (map[string]any, error) {
	args := map[string]any{}
	for _, in := range s.inputs {
		v, err := in.slot.read(row)
		switch {
		case in.declared.IsOptional() && (err != nil || v == nil):
			continue
		case err != nil:
			return nil, fmt.Errorf("input %s of the tool: %w", in.name, err)
		}
		if v != nil {
			if x, err := value.Assign(in.declared, v); err == nil {
				v = x // a date for a text that is one, a float for an int
			}
		}
		args[in.name] = value.ToGo(v)
	}
	return args, nil
}

// setOutputs sets the outputs. Of a result that is an object each takes the field of
// its name; any other result goes whole into every output, null into none. An
// object without a field of that name is the output itself where the tool has
// just one and that is a record.
func (s *invokeTool) setOutputs(row *Row, result any) error {
	if result == nil {
		return nil
	}
	object, isObject := result.(*value.Record)
	for _, out := range s.outputs {
		v := result
		if isObject {
			var named bool
			if v, named = object.Get(out.name); !named && s.whole {
				v = object
			}
		}
		switch {
		case v == nil && out.optional:
			continue
		case v == nil:
			return fmt.Errorf("the result has no %q; it has %s", out.name, listed(object.Names()))
		}
		if err := out.slot.setCoerced(row, v); err != nil {
			return err
		}
	}
	return nil
}

// invokeFlow runs another flow for each row (steps.md 3). The flow sees its
// bound inputs only, and gives its bound outputs only.
type invokeFlow struct{ *subflow }

func buildInvokeFlow(s *spec.InvokeFlow, env *Env) (Runner, error) {
	f := s.Flow.To
	if f == nil || env.Flow == nil {
		return nil, fmt.Errorf("the flow is not linked")
	}
	step := &invokeFlow{&subflow{step: s.ID, flow: f, run: env.Flow, inputs: make([]*slot, len(f.Inputs))}}
	ins, err := env.bindings(s.InputBindings)
	if err != nil {
		return nil, err
	}
	for _, b := range ins {
		i := refNamed(f.Inputs, b.name)
		if i < 0 {
			return nil, fmt.Errorf("flow %s has no input %q", f.ID, b.name)
		}
		step.inputs[i] = &b.slot
	}
	outs, err := env.bindings(s.OutputBindings)
	for _, b := range outs {
		i := refNamed(f.Outputs, b.name)
		if i < 0 {
			return nil, fmt.Errorf("flow %s has no output %q", f.ID, b.name)
		}
		step.outputs = append(step.outputs, flowOutput{at: i, to: b.slot})
	}
	return step, err
}

// refNamed is the place of the variable of that id, -1 where there is none.
func refNamed(refs []spec.Ref[*spec.Variable], id string) int {
	for i := range refs {
		if refs[i].To != nil && refs[i].To.ID == id {
			return i
		}
	}
	return -1
}

// Process emits one row for each result of the flow.
func (s *invokeFlow) Process(ctx context.Context, row *Row, emit Emit) error {
	return s.each(ctx, row, emit)
}
