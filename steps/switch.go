package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// switchStep runs the flow of the first case whose condition holds.
type switchStep struct {
	cases []switchCase
	other *subflow // for rows that match no case; nil where they pass unchanged
}

// switchCase is a condition and its flow.
type switchCase struct {
	when *formula
	then *subflow
}

func buildSwitch(s *spec.Switch, env *Env) (Runner, error) {
	c := &switchStep{}
	for i, declared := range s.Cases {
		when, err := env.condition(&declared.When)
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i+1, err)
		}
		then, err := env.newSubflow(&declared.Flow, &s.StepBase)
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i+1, err)
		}
		c.cases = append(c.cases, switchCase{when, then})
	}
	if spec.IsEmpty(&s.Else) {
		return c, nil
	}
	var err error
	if c.other, err = env.newSubflow(&s.Else, &s.StepBase); err != nil {
		return nil, fmt.Errorf("else: %w", err)
	}
	return c, nil
}

// Process emits one row for each result of the selected flow, or the row itself where
// none is selected: the outputs then keep their values. Conditions after the first
// that holds are not evaluated.
func (c *switchStep) Process(ctx context.Context, row *Row, emit Emit) error {
	chosen := c.other
	for _, one := range c.cases {
		yes, err := one.when.holds(ctx, row)
		if err != nil {
			return err
		}
		if yes {
			chosen = one.then
			break
		}
	}
	if chosen == nil {
		return emit(row)
	}
	return chosen.each(ctx, row, emit)
}
