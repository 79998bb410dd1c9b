package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// switchStep runs the flow of the first case whose condition holds. It is Switch
// in the document.
type switchStep struct {
	cases []switchCase
	other *subflow // for rows that no case holds for; nil where they pass as they are
}

// switchCase is a condition and the flow behind it.
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
	if s.Else.IsZero() {
		return c, nil
	}
	var err error
	if c.other, err = env.newSubflow(&s.Else, &s.StepBase); err != nil {
		return nil, fmt.Errorf("else: %w", err)
	}
	return c, nil
}

// Process emits one row for each result of the chosen flow, or the row itself
// where none is chosen: the step's outputs then stay what they were. Conditions
// behind the first that holds are not looked at.
func (c *switchStep) Process(ctx context.Context, row *Row, emit Emit) error {
	chosen := c.other
	for _, one := range c.cases {
		yes, err := one.when.holds(row)
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
