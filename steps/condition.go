package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Condition is a condition over values outside of a flow, such as that of a test on
// a flow's results. It is safe for concurrent use.
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
		return nil, f.wrapError(fmt.Errorf("it has type %s, not boolean", result))
	}
	c.formula = f
	return c, nil
}

// Variables lists the variables that the condition reads.
func (c *Condition) Variables() []*spec.Variable { return c.vars }

// Holds evaluates the condition; get returns a variable's value by its id.
func (c *Condition) Holds(ctx context.Context, get func(id string) (any, bool)) (bool, error) {
	row := &Row{Values: make([]any, len(c.vars))}
	for i, v := range c.vars {
		found, ok := get(v.ID)
		if !ok {
			found = value.Unset
		}
		row.Values[i] = found
	}
	return c.formula.holds(ctx, row)
}
