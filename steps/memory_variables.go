package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// variableStore sets and reads the named values of a memory. Within a turn of the
// memory they are kept with it, whole or not at all.
type variableStore struct{ memory *memory.Memory }

// set sets values in their order; one without JSON text is removed.
func (k variableStore) set(ctx context.Context, session string, values []memory.Variable) error {
	if len(values) == 0 {
		return nil
	}
	if turn := activeTurn(ctx, k.memory, session); turn != nil {
		for _, v := range values {
			if err := turn.Set(v.Name, v.Value); err != nil {
				return err
			}
		}
		return nil
	}
	return k.memory.SetVariables(ctx, session, values...)
}

// read is the session's values by their names.
func (k variableStore) read(ctx context.Context, session string) (map[string]json.RawMessage, error) {
	var all []memory.Variable
	var err error
	if turn := activeTurn(ctx, k.memory, session); turn != nil {
		all = turn.Variables()
	} else if all, err = k.memory.Variables(ctx, session); err != nil {
		return nil, err
	}
	values := make(map[string]json.RawMessage, len(all))
	for _, v := range all {
		values[v.Name] = v.Value
	}
	return values, nil
}

// memoryVariables is the step MemoryVariables.
type memoryVariables struct {
	id     string
	keeper variableStore
	in     []slot
	out    []slot
	forget []string // names
}

func buildMemoryVariables(s *spec.MemoryVariables, env *Env) (Runner, error) {
	if s.Memory.To == nil || env.Memory == nil {
		return nil, errors.New("the memory is not linked")
	}
	m, err := env.Memory(s.Memory.To)
	if err != nil {
		return nil, err
	}
	step := &memoryVariables{id: s.ID, keeper: variableStore{m}, forget: s.Forget}
	if step.in, err = env.slots(s.Inputs); err != nil {
		return nil, err
	}
	if step.out, err = env.slots(s.Outputs); err != nil {
		return nil, err
	}
	if len(step.in)+len(step.out)+len(step.forget) == 0 {
		return nil, errors.New("needs an input to keep, an output to read or a name to forget")
	}
	return step, nil
}

// Process keeps the inputs and reads the outputs. An optional input that is unset
// or null leaves what the session holds.
func (s *memoryVariables) Process(ctx context.Context, row *Row, emit Emit) error {
	var set []memory.Variable
	for _, name := range s.forget {
		set = append(set, memory.Variable{Name: name})
	}
	for _, in := range s.in {
		v, err := in.read(row)
		switch {
		case in.of.IsOptional() && (err != nil || v == nil):
			continue
		case err != nil:
			return err
		case v == nil:
			return fmt.Errorf("variable %s is null; what is to be removed stands under forget", in.of.ID)
		}
		set = append(set, memory.Variable{Name: in.of.ID, Value: value.JSON(v)})
	}
	if err := s.keeper.set(ctx, row.Session, set); err != nil {
		return err
	}
	held, err := s.keeper.read(ctx, row.Session)
	if err != nil {
		return err
	}
	for _, out := range s.out {
		v, err := storedValue(held, out.of)
		if err != nil {
			return fmt.Errorf("session %q: %w", row.Session, err)
		}
		out.write(row, v)
	}
	return emit(row)
}

// storedValue is a value of the session as the variable of its name takes it.
func storedValue(held map[string]json.RawMessage, of *spec.Variable) (any, error) {
	raw, found := held[of.ID]
	switch {
	case !found && of.IsOptional():
		return nil, nil
	case !found:
		return nil, fmt.Errorf("no value %q was kept yet; where that may be, declare the variable optional: %s?", of.ID, of.Type)
	}
	v, err := value.Parse(string(raw))
	if err == nil {
		v, err = value.Assign(of, v)
	}
	if err != nil {
		return nil, fmt.Errorf("the value %q that was kept: %w", of.ID, err)
	}
	return v, nil
}

// memoryTool lets a model do what the step MemoryVariables does.
type memoryTool struct {
	declared *spec.MemoryTool
	keeper   variableStore
}

// NewMemoryTool makes the tool that keeps the values that a model gives it in m
// and reads those that it answers. It works in the session of the step that
// calls it, and within that step's turn where it has one of this memory.
func NewMemoryTool(declared *spec.MemoryTool, m *memory.Memory) tool.Tool {
	return &memoryTool{declared, variableStore{m}}
}

// Info is the declaration.
func (t *memoryTool) Info() tool.Info {
	base := t.declared.Common()
	return tool.Info{ID: base.ID, Name: base.Name, Description: base.Description, Inputs: base.Inputs, Parameters: tool.Schema(base.Inputs)}
}

// Call keeps the arguments and answers the outputs, or what was kept where the
// tool has none.
func (t *memoryTool) Call(ctx context.Context, args map[string]any) (any, error) {
	at := callContextFrom(ctx)
	if at == nil {
		return nil, &tool.Error{Tool: t.declared.ID, Message: "it was called outside of a step, so that there is no session"}
	}
	var set []memory.Variable
	var names []string
	for _, in := range t.declared.Inputs {
		given, found := args[in.ID]
		if !found {
			continue
		}
		raw, err := json.Marshal(given)
		if err != nil {
			return nil, &tool.ArgumentError{Tool: t.declared.ID, Argument: in.ID, Problem: "it cannot be written as JSON"}
		}
		set, names = append(set, memory.Variable{Name: in.ID, Value: raw}), append(names, in.ID)
	}
	if err := t.keeper.set(ctx, at.session, set); err != nil {
		return nil, err
	}
	if len(t.declared.Outputs) == 0 {
		if len(names) == 0 {
			return "nothing was given, so nothing was kept", nil
		}
		return "kept: " + listed(names), nil
	}
	held, err := t.keeper.read(ctx, at.session)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	for _, out := range t.declared.Outputs {
		answer[out.ID] = nil
		if raw, found := held[out.ID]; found {
			numbers := json.NewDecoder(bytes.NewReader(raw))
			numbers.UseNumber()
			var v any
			if err := numbers.Decode(&v); err != nil {
				return nil, fmt.Errorf("the value %q that was kept is not JSON", out.ID)
			}
			answer[out.ID] = v
		}
	}
	return answer, nil
}
