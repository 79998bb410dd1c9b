package steps

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// parallel runs several flows on one row at the same time.
type parallel struct{ branches []*subflow }

func buildParallel(s *spec.Parallel, env *Env) (Runner, error) {
	p := &parallel{}
	for i := range s.Flows {
		b, err := env.newSubflow(&s.Flows[i], &s.StepBase)
		if err != nil {
			return nil, err
		}
		p.branches = append(p.branches, b)
	}
	return p, nil
}

// errSiblingFailed cancels the other flows once one has failed.
var errSiblingFailed = errors.New("another of the parallel flows failed")

// branchResults collects how the flows of one row ended.
type branchResults struct {
	mu      sync.Mutex
	outputs [][]any // by flow
	failed  *Error  // the first failure inside of a flow
	err     error   // or why a flow could not run
}

// fail stores the first failure and cancels the other flows.
func (s *branchResults) fail(cancel context.CancelCauseFunc, failed *Error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil && s.err == nil {
		s.failed, s.err = failed, err
	}
	cancel(errSiblingFailed)
}

// Process runs the flows, each on the row as it came, and sets their outputs once all
// have ended, in the order of the document. The first failure is the row's and
// cancels the other flows. The last flow runs on the caller's goroutine.
func (p *parallel) Process(ctx context.Context, row *Row, emit Emit) error {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &branchResults{outputs: make([][]any, len(p.branches))}
	var group sync.WaitGroup
	last := len(p.branches) - 1
	for i, b := range p.branches {
		if i < last {
			group.Go(func() { s.run(own, cancel, row, i, b) })
		} else {
			s.run(own, cancel, row, i, b)
		}
	}
	group.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.err != nil:
		return s.err
	case s.failed != nil:
		row.Err = p.branches[0].wrapError(s.failed)
		return emit(row)
	}
	for i, b := range p.branches {
		if err := b.set(row, s.outputs[i]); err != nil {
			return err
		}
	}
	return emit(row)
}

// run runs one flow. A panic becomes the error of the row.
func (s *branchResults) run(ctx context.Context, cancel context.CancelCauseFunc, row *Row, index int, flow *subflow) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(cancel, nil, fmt.Errorf("internal error: %v", p))
		}
	}()
	outputs, failed, err := flow.once(ctx, row)
	if err != nil || failed != nil {
		s.fail(cancel, failed, err)
		return
	}
	s.outputs[index] = outputs
}
