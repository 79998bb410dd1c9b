package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// invokeFlow runs another flow for each row. The flow gets its bound inputs only and
// returns its bound outputs only.
type invokeFlow struct{ *subflow }

func buildInvokeFlow(s *spec.InvokeFlow, env *Env) (Runner, error) {
	f := s.Flow.To
	if f == nil || env.Flow == nil {
		return nil, fmt.Errorf("the flow is not linked")
	}
	step := &invokeFlow{&subflow{step: s.ID, flow: f, run: env.Flow, inputs: make([]*slot, len(f.Inputs))}}
	ins, err := env.bindings(s.InputBindings)
	if err != nil {
		return nil, err
	}
	for _, b := range ins {
		i := refNamed(f.Inputs, b.name)
		if i < 0 {
			return nil, fmt.Errorf("flow %s has no input %q", f.ID, b.name)
		}
		step.inputs[i] = &b.slot
	}
	outs, err := env.bindings(s.OutputBindings)
	for _, b := range outs {
		i := refNamed(f.Outputs, b.name)
		if i < 0 {
			return nil, fmt.Errorf("flow %s has no output %q", f.ID, b.name)
		}
		step.outputs = append(step.outputs, flowOutput{at: i, to: b.slot})
	}
	return step, err
}

// refNamed returns the index of the variable with that id, -1 for none.
func refNamed(refs []spec.Ref[*spec.Variable], id string) int {
	for i := range refs {
		if refs[i].To != nil && refs[i].To.ID == id {
			return i
		}
	}
	return -1
}

// Process emits one row for each result of the flow.
func (s *invokeFlow) Process(ctx context.Context, row *Row, emit Emit) error {
	return s.each(ctx, row, emit)
}
