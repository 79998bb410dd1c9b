package steps

import (
	"context"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// explode makes one row of each element of a list.
type explode struct {
	in, out slot
	blocks  sync.Pool // of *rowPool, which Collect releases
}

func buildExplode(s *spec.Explode, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	return &explode{in: in, out: out}, nil
}

// Process emits one row for each element, in order; an empty list emits none.
func (e *explode) Process(_ context.Context, row *Row, emit Emit) error {
	v, err := e.in.read(row)
	if err != nil {
		return err
	}
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("variable %s: expected a list, got %s", e.in.of.ID, value.Describe(v))
	}
	var copies []Row
	for i, item := range items {
		if len(copies) == 0 {
			copies = row.clones(min(len(items)-i, rowsPerBlock), &e.blocks)
		}
		c := &copies[0]
		copies = copies[1:]
		e.out.write(c, item)
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// rowsPerBlock is how many rows are allocated together. A row that is retained
// retains the others of its block.
const rowsPerBlock = 16
