package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// transform sets variables by expressions.
type transform struct{ sets []assignment }

// assignment is a variable and the expression of its value.
type assignment struct {
	to   slot
	from *formula
}

func buildTransform(s *spec.Transform, env *Env) (Runner, error) {
	t := &transform{}
	for i := range s.Set {
		declared := &s.Set[i]
		to, err := env.slot(declared.Var.To)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", declared.Var.ID, err)
		}
		from, result, err := env.formula(&declared.Expr)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", declared.Var.ID, err)
		}
		if !result.AssignableTo(to.of.Type) {
			return nil, fmt.Errorf("set %s: its type is %s, but the expression has type %s", declared.Var.ID, to.of.Type, result)
		}
		t.sets = append(t.sets, assignment{to, from})
	}
	return t, nil
}

// Process evaluates all expressions on the row as it came, then sets the variables,
// each converted to its declared type.
func (t *transform) Process(ctx context.Context, row *Row, emit Emit) error {
	values := make([]any, len(t.sets))
	for i, set := range t.sets {
		v, err := set.value(ctx, row)
		if err != nil {
			return fmt.Errorf("set %s: %w", set.to.of.ID, err)
		}
		values[i] = v
	}
	for i, set := range t.sets {
		set.to.write(row, values[i])
	}
	return emit(row)
}

// value returns the variable's new value.
func (a assignment) value(ctx context.Context, row *Row) (any, error) {
	v, err := a.from.value(ctx, row)
	if err != nil {
		return nil, err
	}
	v, err = value.Assign(a.to.of, v)
	if err != nil {
		return nil, a.from.wrapError(err)
	}
	return v, nil
}
