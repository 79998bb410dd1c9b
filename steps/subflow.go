package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// subflow is a flow that a step runs, and the variables that it passes in and sets.
type subflow struct {
	step    string // the step's id
	flow    *spec.Flow
	run     func(context.Context, FlowCall, FlowEmit) error
	inputs  []*slot // one for each input of the flow; nil where nothing is passed
	outputs []flowOutput
}

// flowOutput is an output of the flow and the variable that it sets.
type flowOutput struct {
	at      int // index in the flow's outputs
	to      slot
	convert bool // the two are declared with different types
}

// newSubflow makes a subflow whose variables are matched with the step's by their ids.
func (e *Env) newSubflow(ref *spec.Ref[*spec.Flow], s *spec.StepBase) (*subflow, error) {
	f := ref.To
	if f == nil {
		return nil, fmt.Errorf("the flow %q is not linked", ref.ID)
	}
	if e.Flow == nil {
		return nil, errors.New("no flow runner configured")
	}
	b := &subflow{step: s.ID, flow: f, run: e.Flow, inputs: make([]*slot, len(f.Inputs))}
	ins, err := e.slots(s.Inputs)
	if err != nil {
		return nil, err
	}
	for i := range ins {
		if at := refNamed(f.Inputs, ins[i].of.ID); at >= 0 {
			b.inputs[at] = &ins[i]
		}
	}
	for i, given := range b.inputs {
		if in := f.Inputs[i].To; given == nil && in != nil && !in.IsOptional() {
			return nil, fmt.Errorf("flow %s requires input %s, which is not an input of the step", f.ID, in.ID)
		}
	}
	outs, err := e.slots(s.Outputs)
	if err != nil {
		return nil, err
	}
	for _, to := range outs {
		if at := refNamed(f.Outputs, to.of.ID); at >= 0 {
			inner := f.Outputs[at].To
			differ := !inner.Type.Same(to.of.Type) || inner.IsOptional() && !to.of.IsOptional()
			b.outputs = append(b.outputs, flowOutput{at: at, to: to, convert: differ})
		}
	}
	return b, nil
}

// call runs the flow on a row. It reads the row before the flow begins.
func (b *subflow) call(ctx context.Context, row *Row, emit FlowEmit) error {
	call := FlowCall{Flow: b.flow, Inputs: make([]any, len(b.inputs)), Session: row.Session, Number: row.Number, Ordinal: row.Ordinal}
	for i, in := range b.inputs {
		call.Inputs[i] = any(value.Unset)
		if in != nil {
			call.Inputs[i] = in.orNull(row)
		}
	}
	return b.run(ctx, call, emit)
}

// set writes the flow's outputs to the row; an unset one becomes null.
func (b *subflow) set(row *Row, outputs []any) error {
	for _, out := range b.outputs {
		v := outputs[out.at]
		if v == any(value.Unset) {
			v = nil
		}
		if out.convert {
			x, err := value.Assign(out.to.of, v)
			if err != nil {
				return fmt.Errorf("output %s of flow %s: %w", out.to.of.ID, b.flow.ID, err)
			}
			v = x
		}
		out.to.write(row, v)
	}
	return nil
}

// wrapError returns the error of a row that failed inside of the flow, with the path
// of steps to the failure.
func (b *subflow) wrapError(failed *Error) *Error { return &Error{Step: b.step, Err: failed} }

// each emits one row for each result of the flow; a failed result stays failed.
func (b *subflow) each(ctx context.Context, row *Row, emit Emit) error {
	return b.call(ctx, row, func(outputs []any, failed *Error) error {
		c := row.Clone()
		if failed != nil {
			c.Err = b.wrapError(failed)
			return emit(c)
		}
		if err := b.set(c, outputs); err != nil {
			c.Err = &Error{Step: b.step, Err: err}
		}
		return emit(c)
	})
}

// once runs the flow on a row that must become one row. failed is why the row failed
// inside of the flow, err why the flow could not run.
func (b *subflow) once(ctx context.Context, row *Row) (outputs []any, failed *Error, err error) {
	made := 0
	err = b.call(ctx, row, func(out []any, why *Error) error {
		if made++; made == 1 {
			outputs, failed = out, why
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case made != 1:
		return nil, nil, fmt.Errorf("flow %s returned %d rows for one; it must return exactly one", b.flow.ID, made)
	}
	return outputs, failed, nil
}
