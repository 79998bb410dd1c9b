package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// echo copies inputs to the outputs of the same name.
type echo struct{ from, to []slot }

func buildEcho(s *spec.Echo, env *Env) (Runner, error) {
	in, err := env.slots(s.Inputs)
	if err != nil {
		return nil, err
	}
	e := &echo{}
	if e.to, err = env.slots(s.Outputs); err != nil {
		return nil, err
	}
	byName := map[string]slot{}
	for _, v := range in {
		byName[v.of.ID] = v
	}
	for _, v := range e.to {
		source, ok := byName[v.of.ID]
		if !ok {
			return nil, fmt.Errorf("output %s is not among the inputs", v.of.ID)
		}
		e.from = append(e.from, source)
	}
	return e, nil
}

// Process copies the values; an unset one becomes null.
func (e *echo) Process(_ context.Context, row *Row, emit Emit) error {
	for i, to := range e.to {
		to.write(row, e.from[i].orNull(row))
	}
	return emit(row)
}
