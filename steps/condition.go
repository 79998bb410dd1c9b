package steps

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Condition is a condition over values that are in no flow any more, such as a
// test's over what came out of one. It is safe for concurrent use.
type Condition struct {
	formula *formula
	vars    []*spec.Variable
}

// NewCondition compiles a condition whose variables are linked.
func NewCondition(x *spec.Expression) (*Condition, error) {
	c := &Condition{}
	f, result, err := newFormula(x, func(v *spec.Variable) (slot, error) {
		c.vars = append(c.vars, v)
		return slot{len(c.vars) - 1, v}, nil
	})
	if err != nil {
		return nil, err
	}
	if !result.IsBool() {
		return nil, f.fault(fmt.Errorf("it gives %s, not true or false", result))
	}
	c.formula = f
	return c, nil
}

// Variables lists what the condition reads.
func (c *Condition) Variables() []*spec.Variable { return c.vars }

// Holds works the condition out where get finds the variables' values by their ids.
func (c *Condition) Holds(get func(id string) (any, bool)) (bool, error) {
	row := &Row{Values: make([]any, len(c.vars))}
	for i, v := range c.vars {
		found, ok := get(v.ID)
		if !ok {
			found = value.Unset
		}
		row.Values[i] = found
	}
	return c.formula.holds(row)
}
