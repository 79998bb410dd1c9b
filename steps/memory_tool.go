package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// memoryTool gives a model access to the named values of a memory.
type memoryTool struct {
	declared *spec.MemoryTool
	store    variableStore
}

// NewMemoryTool makes the tool that stores the values that a model passes in m and
// returns stored values. It works in the session of the calling step, and within the
// step's turn if this is a turn of m.
func NewMemoryTool(declared *spec.MemoryTool, m *memory.Memory) tool.Tool {
	return &memoryTool{declared, variableStore{m, memory.Scope(declared.Scope)}}
}

// Info describes the tool.
func (t *memoryTool) Info() tool.Info {
	base := t.declared.Common()
	return tool.Describe(base, base.Inputs)
}

// Call stores the arguments and returns the outputs, or the names of what it stored if
// the tool has no outputs.
func (t *memoryTool) Call(ctx context.Context, args map[string]any) (any, error) {
	session, err := toolSession(ctx, t.declared.ID)
	if err != nil {
		return nil, err
	}
	given, err := t.Info().ValidateArgs(args)
	if err != nil {
		return nil, err
	}
	var set []memory.Variable
	var names []string
	for _, in := range t.declared.Inputs {
		arg, found := given[in.ID]
		if !found {
			continue
		}
		raw, err := json.Marshal(arg)
		if err != nil {
			return nil, &tool.ArgumentError{Tool: t.declared.ID, Argument: in.ID, Problem: "cannot be encoded as JSON"}
		}
		set, names = append(set, memory.Variable{Name: in.ID, Value: raw}), append(names, in.ID)
	}
	if err := t.store.set(ctx, session, set); err != nil {
		return nil, err
	}
	if len(t.declared.Outputs) == 0 {
		if len(names) == 0 {
			return "no arguments, nothing stored", nil
		}
		return "stored: " + listed(names), nil
	}
	stored, err := t.store.read(ctx, session)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	for _, out := range t.declared.Outputs {
		answer[out.ID] = nil
		if raw, found := stored[out.ID]; found {
			numbers := json.NewDecoder(bytes.NewReader(raw))
			numbers.UseNumber()
			var v any
			if err := numbers.Decode(&v); err != nil {
				return nil, fmt.Errorf("the stored value %q is not JSON", out.ID)
			}
			answer[out.ID] = v
		}
	}
	return answer, nil
}
