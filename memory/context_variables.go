package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// variablesValue names the value that holds a session's variables.
const variablesValue = "variables"

// What a session keeps of variables at most.
const (
	maxVariableName  = 128      // bytes of a name
	maxVariableBytes = 64 << 10 // of one value, as JSON
	maxVariables     = 1_000    // in one session
)

// Variable is a named value that steps and agents keep for a session.
type Variable struct {
	Name  string          `json:"name"`  // unique in the session
	Value json.RawMessage `json:"value"` // compact JSON, never null
	Turn  int64           `json:"turn"`  // the turn that set it; where none did, the one before
}

// VariableError says why a variable cannot be kept.
type VariableError struct {
	Memory  string // the memory's id
	Name    string // the variable's name
	Problem string // what is wrong
}

// Error names the variable and the problem.
func (e *VariableError) Error() string {
	return fmt.Sprintf("memory %s: variable %q cannot be kept: %s", e.Memory, e.Name, e.Problem)
}

// Set sets a variable of the session, or removes it where value is null or nil.
// It is kept with the turn: whole or not at all. Several processes that set the
// same variable at once do so one after the other; the last one's value holds.
func (t *Turn) Set(name string, value json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	made, err := t.memory.variable(name, value)
	if err != nil {
		return err
	}
	held := setVariable(t.mergedVariables(), made)
	if len(held) > maxVariables {
		return &VariableError{Memory: t.memory.id, Name: name, Problem: fmt.Sprintf("the session has %d already, and more are not possible", maxVariables)}
	}
	t.set = setVariable(t.set, made, keepTombstones)
	return nil
}

// Variables are the session's variables with what was set in this turn, by name.
func (t *Turn) Variables() []Variable {
	t.mu.Lock()
	defer t.mu.Unlock()
	return byName(t.mergedVariables())
}

// mergedVariables are the variables as a commit would leave them, the one that was set last at the end.
func (t *Turn) mergedVariables() []Variable { return mergeVariables(variablesOf(t.base), t.set) }

// mergeVariables are the old variables with the new ones; those without a value are gone.
func mergeVariables(old, set []Variable) []Variable {
	for _, v := range set {
		old = setVariable(old, v)
	}
	return old
}

// keepTombstones makes setVariable keep a variable without a value.
const keepTombstones = true

// setVariable is a copy of all with one more at the end, in the place of the one
// of the same name.
func setVariable(all []Variable, v Variable, keep ...bool) []Variable {
	out := slices.DeleteFunc(slices.Clone(all), func(old Variable) bool { return old.Name == v.Name })
	if v.Value != nil || len(keep) > 0 {
		out = append(out, v)
	}
	return out
}

// variable checks a name and a value, and makes the value compact.
func (m *Memory) variable(name string, value json.RawMessage) (Variable, error) {
	fault := func(problem string) (Variable, error) {
		return Variable{}, &VariableError{Memory: m.id, Name: name, Problem: problem}
	}
	switch {
	case name == "" || len(name) > maxVariableName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fault(fmt.Sprintf("a name is 1 to %d bytes of printable text", maxVariableName))
	case len(value) == 0 || string(bytes.TrimSpace(value)) == "null":
		return Variable{Name: name}, nil
	case !utf8.Valid(value):
		return fault("the value is not UTF-8 text")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return fault("the value is no JSON")
	}
	if compact.Len() > maxVariableBytes {
		return fault(fmt.Sprintf("the value has %s bytes, at most %s are possible", thousands(compact.Len()), thousands(maxVariableBytes)))
	}
	return Variable{Name: name, Value: compact.Bytes()}, nil
}

// variablesOf are those that a view holds, the one that was set last at the end.
func variablesOf(v *view) []Variable {
	var all []Variable
	if raw := v.values[variablesValue]; len(raw) > 0 && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

func byName(all []Variable) []Variable {
	return slices.SortedFunc(slices.Values(all), func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
}

// Variables are the session's variables as committed by now, by name.
func (m *Memory) Variables(ctx context.Context, session string) ([]Variable, error) {
	v, err := m.reload(ctx, m.key(session))
	if err != nil || m.expired(v.state) {
		return nil, err
	}
	return byName(variablesOf(v)), nil
}

// SetVariables sets variables outside of any turn, in their order, all of them
// or none; one with a nil or null value is removed. Only names and values are
// read. It waits for the session's turn.
func (m *Memory) SetVariables(ctx context.Context, session string, set ...Variable) error {
	t, err := m.open(ctx, session, m.cached)
	if err != nil {
		return err
	}
	defer t.drop()
	for _, v := range set {
		if err := t.Set(v.Name, v.Value); err != nil {
			return err
		}
	}
	return t.commit(ctx, true)
}

// applyVariables is the step that sets variables; s may be one that says something, or nil.
func (m *Memory) applyVariables(base *view, s *transition, set []Variable) (*transition, error) {
	old := variablesOf(base)
	set = slices.DeleteFunc(slices.Clone(set), func(v Variable) bool { return isUnchanged(old, v) })
	if len(set) == 0 {
		return s, nil
	}
	if s == nil {
		s = m.noChange(base)
		s.next.state.LastSaid = time.UnixMicro(m.now().UnixMicro()).UTC() // it was touched
		s.change.State = s.next.state
	}
	stamped := slices.Clone(set)
	var names []string
	for i := range stamped {
		stamped[i].Turn = s.next.state.Turns
		names = append(names, stamped[i].Name)
	}
	all := mergeVariables(old, stamped)
	if len(all) > maxVariables {
		return nil, &VariableError{Memory: m.id, Name: names[0], Problem: fmt.Sprintf("the session has %d already, and more are not possible", maxVariables)}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, errors.New("the variables cannot be written as JSON")
	}
	if len(all) == 0 {
		raw = nil
	}
	s.setValue(variablesValue, raw)
	s.change.Events = append(s.change.Events, Event{Kind: EventVariables, Turn: s.next.state.Turns, Time: s.next.state.LastSaid,
		Reason: "set: " + strings.Join(names, ", ")})
	return s, nil
}

// isUnchanged tells whether a variable is among all as it is, or not there and without a value.
func isUnchanged(all []Variable, v Variable) bool {
	i := slices.IndexFunc(all, func(old Variable) bool { return old.Name == v.Name })
	if i < 0 {
		return v.Value == nil
	}
	return bytes.Equal(all[i].Value, v.Value)
}

// variableUnits are variables as a model reads them: a line for each, by name.
// Where there is no room the one that was set the longest ago leaves first.
func variableUnits(all []Variable) []contextUnit {
	units := make([]contextUnit, 0, len(all))
	for i, v := range all {
		units = append(units, contextUnit{text: "- " + v.Name + ": " + v.singleLine(), rank: len(all) - i})
	}
	slices.SortFunc(units, func(a, b contextUnit) int { return cmp.Compare(a.text, b.text) })
	return units
}

// singleLine is the value on one line: a text that has one line as it is, all else as JSON.
func (v Variable) singleLine() string {
	var text string
	if json.Unmarshal(v.Value, &text) == nil && !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	return string(v.Value)
}
