package memory

import (
	"context"
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/memory/change"
)

// Set sets a variable of the session, or removes it if value is null or nil. The
// change is part of the turn: Commit stores it. If several processes set the
// same variable, the last commit wins.
func (t *Turn) Set(name string, value json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	v, err := change.NewVariable(t.memory.id, name, value)
	if err != nil {
		return err
	}
	if len(change.MergeVariables(t.variables(), []change.Variable{v})) > change.MaxVariables {
		return change.TooManyVariables(t.memory.id, name)
	}
	t.set = change.PutVariable(t.set, v)
	return nil
}

// Variables returns the session's variables with those of this turn, by name.
func (t *Turn) Variables() []change.Variable {
	t.mu.Lock()
	defer t.mu.Unlock()
	return change.SortedByName(t.variables())
}

// variables returns the variables as Commit would store them, the one that was set last at the end.
func (t *Turn) variables() []change.Variable {
	return change.MergeVariables(change.VariablesOf(t.base.Values), t.set)
}

// SetVariables sets variables outside of a turn, all or none; one with a nil or
// null value is removed. Only names and values are read. It waits while a turn
// of the session is active.
func (m *Memory) SetVariables(ctx context.Context, session string, set ...change.Variable) error {
	t, err := m.open(ctx, session, false)
	if err != nil {
		return err
	}
	defer t.close()
	for _, v := range set {
		if err := t.Set(v.Name, v.Value); err != nil {
			return err
		}
	}
	return t.commit(ctx, true)
}
