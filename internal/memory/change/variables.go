package change

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// variablesValue is the value with a session's variables.
const variablesValue = "variables"

// replacedValue is the value with the variables that were replaced or removed
// lately, so that Rewind and Fork can return to them.
const replacedValue = "variables.replaced"

// The limits of variables.
const (
	maxVariableName  = 128      // bytes of a name
	maxVariableBytes = 64 << 10 // of one value, as JSON
	MaxVariables     = 1_000    // in one session
	maxReplacedBytes = 64 << 10 // of the replaced ones, as JSON
)

// Variable is a named value that steps and agents keep for a session.
type Variable struct {
	Name  string          `json:"name"`  // unique in the session
	Value json.RawMessage `json:"value"` // compact JSON, never null
	Turn  int64           `json:"turn"`  // the turn that set it, or the last turn before
}

// VariableError reports why a variable cannot be stored.
type VariableError struct {
	Memory  string // the memory's id
	Name    string // the variable's name
	Problem string // what is wrong
}

// Error names the variable and the problem.
func (e *VariableError) Error() string {
	return fmt.Sprintf("memory %s: variable %q cannot be stored: %s", e.Memory, e.Name, e.Problem)
}

// TooManyVariables returns the error for a variable beyond MaxVariables.
func TooManyVariables(memory, name string) error {
	return &VariableError{Memory: memory, Name: name, Problem: fmt.Sprintf("the session has the maximum of %d variables", MaxVariables)}
}

// NewVariable checks a name and a value and makes the value compact. The value
// null makes a Variable without a value.
func NewVariable(memory, name string, value json.RawMessage) (Variable, error) {
	problem := ""
	var compact bytes.Buffer
	switch {
	case name == "" || len(name) > maxVariableName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		problem = fmt.Sprintf("a name is 1 to %d bytes of printable text", maxVariableName)
	case len(value) == 0 || string(bytes.TrimSpace(value)) == "null":
		return Variable{Name: name}, nil
	case !utf8.Valid(value):
		problem = "the value is not UTF-8"
	case json.Compact(&compact, value) != nil:
		problem = "the value is not JSON"
	case compact.Len() > maxVariableBytes:
		problem = fmt.Sprintf("the value has %s bytes, the maximum is %s", textfmt.Thousands(compact.Len()), textfmt.Thousands(maxVariableBytes))
	}
	if problem != "" {
		return Variable{}, &VariableError{Memory: memory, Name: name, Problem: problem}
	}
	return Variable{Name: name, Value: compact.Bytes()}, nil
}

// VariablesOf returns the variables of a session, the one that was set last at the end.
func VariablesOf(values map[string][]byte) []Variable {
	var all []Variable
	if raw := values[variablesValue]; len(raw) > 0 && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// PutVariable returns all with v at the end, in the place of the one with the same name.
func PutVariable(all []Variable, v Variable) []Variable {
	return append(withoutVariable(all, v.Name), v)
}

func withoutVariable(all []Variable, name string) []Variable {
	return slices.DeleteFunc(slices.Clone(all), func(old Variable) bool { return old.Name == name })
}

// MergeVariables returns old with the variables of set; those without a value are removed.
func MergeVariables(old, set []Variable) []Variable {
	for _, v := range set {
		if old = withoutVariable(old, v.Name); v.Value != nil {
			old = append(old, v)
		}
	}
	return old
}

// SortedByName returns variables by name.
func SortedByName(all []Variable) []Variable {
	return slices.SortedStableFunc(slices.Values(all), func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
}

// isUnchanged reports whether all has the variable with this value, or neither has one.
func isUnchanged(all []Variable, v Variable) bool {
	i := slices.IndexFunc(all, func(old Variable) bool { return old.Name == v.Name })
	if i < 0 {
		return v.Value == nil
	}
	return bytes.Equal(all[i].Value, v.Value)
}

// NewValues returns the variables of set that differ from the view's.
func NewValues(base *window.View, set []Variable) []Variable {
	if len(set) == 0 {
		return nil
	}
	old := VariablesOf(base.Values)
	return slices.DeleteFunc(slices.Clone(set), func(v Variable) bool { return isUnchanged(old, v) })
}

// SetVariables sets variables of the session, all of which differ from the current ones.
func (t *Transition) SetVariables(memory string, set []Variable) error {
	stamped, old := slices.Clone(set), VariablesOf(t.Next.Values)
	replaced := replacedOf(t.Next.Values)
	var names []string
	for i := range stamped {
		turn := t.Next.State.Turns
		stamped[i].Turn = turn
		names = append(names, stamped[i].Name)
		for _, v := range old {
			if v.Name == stamped[i].Name && v.Turn < turn {
				replaced = append(replaced, replacedVariable{v, turn})
			}
		}
	}
	all := MergeVariables(old, stamped)
	if len(all) > MaxVariables {
		return TooManyVariables(memory, names[0])
	}
	t.WriteVariables(all, replaced)
	t.addEvent(store.Event{Kind: store.EventVariables, Reason: "set: " + strings.Join(names, ", ")})
	return nil
}

// replacedVariable is a variable that a later turn replaced or removed.
type replacedVariable struct {
	Variable
	Until int64 `json:"until"` // that turn
}

func replacedOf(values map[string][]byte) (all []replacedVariable) {
	if raw := values[replacedValue]; len(raw) > 0 && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// WriteVariables sets both values with variables. The oldest replaced ones are
// dropped beyond maxReplacedBytes.
func (t *Transition) WriteVariables(all []Variable, replaced []replacedVariable) {
	size := 0
	for i, v := range slices.Backward(replaced) {
		if size += len(v.Name) + len(v.Value) + len(`{"name":"","value":,"turn":1234,"until":1234},`); size > maxReplacedBytes {
			replaced = replaced[i+1:]
			break
		}
	}
	for name, list := range map[string]struct {
		n   int
		all any
	}{variablesValue: {len(all), all}, replacedValue: {len(replaced), replaced}} {
		raw, _ := json.Marshal(list.all) // values are valid JSON
		if list.n == 0 {
			raw = nil
		}
		if raw != nil || len(t.Next.Values[name]) > 0 {
			t.SetValue(name, raw)
		}
	}
}

// SetVariablesOf gives the variables the values that they had after a turn.
func (t *Transition) SetVariablesOf(turn int64) {
	var then []Variable
	var earlier []replacedVariable
	for _, v := range replacedOf(t.Next.Values) {
		switch {
		case v.Until <= turn:
			earlier = append(earlier, v)
		case v.Turn <= turn:
			then = append(then, v.Variable)
		}
	}
	for _, v := range VariablesOf(t.Next.Values) {
		if v.Turn <= turn {
			then = append(then, v)
		}
	}
	slices.SortStableFunc(then, func(a, b Variable) int { return cmp.Compare(a.Turn, b.Turn) })
	t.WriteVariables(then, earlier)
}
