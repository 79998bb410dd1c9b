package steps

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// slot is the position of a variable in a row.
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

// slots finds the variables of references.
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

// single finds the only variable of a list of references; what names the list.
func (e *Env) single(what string, refs []spec.Ref[*spec.Variable]) (slot, error) {
	if len(refs) != 1 {
		return slot{}, fmt.Errorf("needs exactly 1 %s, has %d", what, len(refs))
	}
	return e.slot(refs[0].To)
}

// inOut finds the input and the output of a step with exactly one of each.
func (e *Env) inOut(s *spec.StepBase) (in, out slot, err error) {
	if in, err = e.single("input", s.Inputs); err != nil {
		return slot{}, slot{}, err
	}
	out, err = e.single("output", s.Outputs)
	return in, out, err
}

// read returns the value, or an error if it was never set.
func (s slot) read(row *Row) (any, error) {
	v := row.Values[s.at]
	if v == value.Unset {
		return nil, fmt.Errorf("variable %s is not set", s.of.ID)
	}
	return v, nil
}

// orNull returns the value, nil if it was never set.
func (s slot) orNull(row *Row) any {
	if v := row.Values[s.at]; v != value.Unset {
		return v
	}
	return nil
}

// write sets the variable.
func (s slot) write(row *Row, v any) { row.Values[s.at] = v }

// isPrimitive reports whether the declared type is a primitive, whose variables keep
// values of other kinds.
func (s slot) isPrimitive() bool { return s.of.Type.IsPrimitive() || s.of.Type.Is("MessageRole") }

// setCoerced sets the variable to a value from outside of the flow, converted to the
// declared type. A scalar that does not convert to a declared primitive is stored
// unchanged: the results of paths and tools are not checked.
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

// binding is a name of the invoked tool or flow and the variable bound to it.
type binding struct {
	name string
	slot slot
}

// bindings finds the variables of bindings.
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
