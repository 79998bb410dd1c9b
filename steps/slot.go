package steps

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// slot is a variable and where it stands in a row.
type slot struct {
	at int            // the index in Row.Values
	of *spec.Variable // the declaration
}

// slot finds a variable of the flow.
func (e *Env) slot(v *spec.Variable) (slot, error) {
	if v == nil {
		return slot{}, fmt.Errorf("a variable is not linked")
	}
	at := e.Slots.Slot(v)
	if at < 0 || at >= e.Slots.Len() {
		return slot{}, fmt.Errorf("variable %s is not part of the flow", v.ID)
	}
	return slot{at, v}, nil
}

// slots finds the variables that references name.
func (e *Env) slots(refs []spec.Ref[*spec.Variable]) ([]slot, error) {
	var all []slot
	for i := range refs {
		s, err := e.slot(refs[i].To)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// single finds the one variable that a list of references must hold; what names the list.
func (e *Env) single(what string, refs []spec.Ref[*spec.Variable]) (slot, error) {
	if len(refs) != 1 {
		return slot{}, fmt.Errorf("needs exactly 1 %s, has %d", what, len(refs))
	}
	return e.slot(refs[0].To)
}

// inOut finds the one input and the one output of a step that has just these.
func (e *Env) inOut(s *spec.StepBase) (in, out slot, err error) {
	if in, err = e.single("input", s.Inputs); err != nil {
		return slot{}, slot{}, err
	}
	out, err = e.single("output", s.Outputs)
	return in, out, err
}

// read is the variable's value, or an error where nothing was ever set.
func (s slot) read(row *Row) (any, error) {
	v := row.Values[s.at]
	if v == value.Unset {
		return nil, fmt.Errorf("variable %s is not set", s.of.ID)
	}
	return v, nil
}

// orNull is the variable's value, null where nothing was set.
func (s slot) orNull(row *Row) any {
	if v := row.Values[s.at]; v != value.Unset {
		return v
	}
	return nil
}

// write sets the variable.
func (s slot) write(row *Row, v any) { row.Values[s.at] = v }

// isPrimitive tells whether the declared type is a primitive, which keeps
// values of other kinds as they are.
func (s slot) isPrimitive() bool { return s.of.Type.IsPrimitive() || s.of.Type.Is("MessageRole") }

// setCoerced sets the variable to what came from outside, coerced to the declared
// type. A scalar that does not convert to a declared primitive stays as it is:
// what a path or a tool found is not checked (steps.md 3, FieldExtractor).
func (s slot) setCoerced(row *Row, raw any) error {
	v, err := value.Assign(s.of, raw)
	if err != nil && s.isPrimitive() {
		v, err = value.FromGo(raw), nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.of.ID, err)
	}
	s.write(row, v)
	return nil
}

// binding is a name inside the invoked thing and the variable behind it.
type binding struct {
	name string
	slot slot
}

// bindings finds the variables that a map of bindings names.
func (e *Env) bindings(bs spec.Bindings) ([]binding, error) {
	var all []binding
	for _, b := range bs {
		s, err := e.slot(b.Var.To)
		if err != nil {
			return nil, fmt.Errorf("binding %s: %w", b.Name, err)
		}
		all = append(all, binding{b.Name, s})
	}
	return all, nil
}
