package steps

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// invokeTool calls a tool for each row.
type invokeTool struct {
	id      string
	tool    tool.Tool
	inputs  []inputBinding
	outputs []outputBinding
	whole   bool // whether the tool has one output, a record: an object may be its value
}

// inputBinding is an input of the tool and the variable bound to it.
type inputBinding struct {
	binding
	declared *spec.Variable
}

// outputBinding is an output of the tool and the variable bound to it.
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
		v := spec.VariableByID(declared, b.name)
		if v == nil {
			return nil, fmt.Errorf("tool %s has no output %q", t.Info().ID, b.name)
		}
		step.outputs = append(step.outputs, outputBinding{b, v.IsOptional() || b.slot.of.IsOptional()})
	}
	step.whole = len(declared) == 1 && (declared[0].Type.IsRecord() || declared[0].Type.Custom != nil)
	return step, err
}

// bindInputs pairs the inputs of the tool with the variables bound to them.
func (s *invokeTool) bindInputs(declared *spec.InvokeTool, env *Env) error {
	ins, err := env.bindings(declared.InputBindings)
	if err != nil {
		return err
	}
	for _, b := range ins {
		v := spec.VariableByID(s.tool.Info().Inputs, b.name)
		if v == nil {
			return fmt.Errorf("tool %s has no input %q", s.tool.Info().ID, b.name)
		}
		s.inputs = append(s.inputs, inputBinding{b, v})
	}
	return nil
}

// singleTool returns the shared tool of a declaration, or the only tool of a set.
func (e *Env) singleTool(declared spec.Tool) (tool.Tool, error) {
	t, err := e.Tool(declared)
	set, many := t.(tool.Set)
	if err != nil || !many {
		return t, err
	}
	tools, err := set.Tools(context.Background()) // it has its own time limit
	if err == nil && len(tools) != 1 {            // the validator checks this (QT436)
		err = fmt.Errorf("tool %s has %d tools; a step calls one, which its tools: key names", declared.EntityID(), len(tools))
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

// Process calls the tool and sets the bound outputs.
func (s *invokeTool) Process(ctx context.Context, row *Row, emit Emit) error {
	args, err := s.arguments(row)
	if err != nil {
		return err
	}
	name := s.tool.Info().Name
	ev := Event{Kind: EventToolCall, Step: s.id, Session: row.Session, Row: row.Number, Tool: name}
	if Wanted(ctx, EventToolCall) {
		ev.Text = string(value.JSON(args))
		Report(ctx, ev)
	}
	result, err := s.call(tool.WithCaller(withCallContext(ctx, s.id, row), tool.Caller{Step: s.id, Session: row.Session, Row: row.Number}), args)
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

// call calls the tool, or returns the recorded result of an earlier run.
func (s *invokeTool) call(ctx context.Context, args map[string]any) (any, error) {
	log := callRecorderFrom(ctx)
	if log == nil {
		return s.tool.Call(ctx, args)
	}
	key := log.key(ctx, "tool", s.tool.Info().ID, string(value.JSON(value.FromGo(args))))
	raw, _, err := recorded(ctx, key, "tool "+s.tool.Info().Name, func(ctx context.Context) (json.RawMessage, error) {
		result, err := s.tool.Call(withCallKey(ctx, key), args)
		return value.JSON(value.FromGo(result)), err
	})
	if err != nil {
		return nil, err
	}
	return value.Parse(string(raw))
}

// arguments collects the bound inputs. An optional argument is left out if it is unset or
// null; a required one is passed as null.
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
				v = x // a date for its text, a float for an int
			}
		}
		args[in.name] = value.ToGo(v)
	}
	return args, nil
}

// setOutputs sets the outputs: each to the field of its name if the result is an
// object, else to the whole result. null sets none. An object without a field of that
// name is the value of the output if the tool has one output, of a record type.
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
