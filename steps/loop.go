package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// loop runs a flow until a condition holds, or max times.
type loop struct {
	body  *subflow
	until *formula // nil: the flow runs exactly max times
	max   int
}

func buildLoop(s *spec.Loop, env *Env) (Runner, error) {
	if s.MaxIterations < 1 {
		return nil, fmt.Errorf("max_iterations must be positive, is %d", s.MaxIterations)
	}
	body, err := env.newSubflow(&s.Flow, &s.StepBase)
	if err != nil {
		return nil, err
	}
	l := &loop{body: body, max: s.MaxIterations}
	if !s.Until.IsZero() {
		l.until, err = env.condition(&s.Until)
	}
	return l, err
}

// Process runs the flow on the row repeatedly. The outputs of a run are the inputs of
// the same ids of the next one. After the last allowed run the row has the outputs of
// that run, whether the condition holds or not.
func (l *loop) Process(ctx context.Context, row *Row, emit Emit) error {
	for n := 1; n <= l.max; n++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		done, err := l.round(ctx, row)
		switch {
		case err != nil:
			return fmt.Errorf("run %d of at most %d: %w", n, l.max, err)
		case done:
			return emit(row)
		}
	}
	return emit(row)
}

// round runs the flow once and reports whether the row is done: the condition holds,
// or the row failed inside of the flow.
func (l *loop) round(ctx context.Context, row *Row) (bool, error) {
	outputs, failed, err := l.body.once(ctx, row)
	if failed != nil {
		row.Err = l.body.wrapError(failed)
	}
	if err != nil || failed != nil {
		return failed != nil, err
	}
	if err := l.body.set(row, outputs); err != nil || l.until == nil {
		return false, err
	}
	return l.until.holds(ctx, row)
}
