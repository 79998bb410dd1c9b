package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// variableStore sets and reads the named values of a memory. Within a turn of the
// memory they are committed with it.
type variableStore struct {
	memory *memory.Memory
	scope  memory.Scope
}

// set sets values in order; one without JSON text is removed.
func (k variableStore) set(ctx context.Context, session string, values []memory.Variable) error {
	if len(values) == 0 {
		return nil
	}
	if turn := activeTurn(ctx, k.memory, session); turn != nil {
		for _, v := range values {
			if err := turn.SetIn(k.scope, v.Name, v.Value); err != nil {
				return err
			}
		}
		return nil
	}
	m, err := memoryFor(ctx, k.memory)
	if err != nil {
		return err
	}
	return m.SetVariables(ctx, k.scope.Session(session), values...)
}

// read returns the session's values by their names.
func (k variableStore) read(ctx context.Context, session string) (map[string]json.RawMessage, error) {
	all, err := k.all(ctx, session)
	if err != nil {
		return nil, err
	}
	values := make(map[string]json.RawMessage, len(all))
	for _, v := range all {
		values[v.Name] = v.Value
	}
	return values, nil
}

// all returns the session's variables, within a turn those of the turn.
func (k variableStore) all(ctx context.Context, session string) ([]memory.Variable, error) {
	if turn := activeTurn(ctx, k.memory, session); turn != nil {
		return turn.VariablesIn(ctx, k.scope)
	}
	m, err := memoryFor(ctx, k.memory)
	if err != nil {
		return nil, err
	}
	return m.Variables(ctx, k.scope.Session(session))
}

// memoryVariables runs MemoryVariables.
type memoryVariables struct {
	id     string
	store  variableStore
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
	step := &memoryVariables{id: s.ID, store: variableStore{m, memory.Scope(s.Scope)}, forget: s.Forget}
	if step.in, err = env.slots(s.Inputs); err != nil {
		return nil, err
	}
	if step.out, err = env.slots(s.Outputs); err != nil {
		return nil, err
	}
	if len(step.in)+len(step.out)+len(step.forget) == 0 {
		return nil, errors.New("needs an input to store, an output to read or a name to forget")
	}
	return step, nil
}

// Process stores the inputs and reads the outputs. An optional input that is unset or
// null does not change the stored value.
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
			return fmt.Errorf("variable %s is null; to remove it, list it under forget", in.of.ID)
		}
		set = append(set, memory.Variable{Name: in.of.ID, Value: value.JSON(v)})
	}
	if err := s.store.set(ctx, row.Session, set); err != nil {
		return err
	}
	if len(set) > 0 {
		Report(ctx, Event{Kind: EventTurn, Step: s.id, Session: row.Session, Row: row.Number, Memory: s.store.memory.ID()})
	}
	stored, err := s.store.read(ctx, row.Session)
	if err != nil {
		return err
	}
	for _, out := range s.out {
		v, err := storedValue(stored, out.of)
		if err != nil {
			return fmt.Errorf("session %q: %w", row.Session, err)
		}
		out.write(row, v)
	}
	return emit(row)
}

// storedValue returns a value of the session as one of the variable's type.
func storedValue(stored map[string]json.RawMessage, of *spec.Variable) (any, error) {
	raw, found := stored[of.ID]
	switch {
	case !found && of.IsOptional():
		return nil, nil
	case !found:
		return nil, fmt.Errorf("no value %q is stored yet; if that may happen, declare the variable optional: %s?", of.ID, of.Type)
	}
	v, err := value.Parse(string(raw))
	if err == nil {
		v, err = value.Assign(of, v)
	}
	if err != nil {
		return nil, fmt.Errorf("the stored value %q: %w", of.ID, err)
	}
	return v, nil
}
