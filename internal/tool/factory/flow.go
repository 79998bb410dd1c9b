package factory

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// maxDepth limits how deep FlowTools may be nested. The validator rejects recursion
// (QT430), but documents made by Go programs are not validated.
const maxDepth = 16

// flowTool runs a flow. Its arguments are the flow's inputs. Its result is an object of
// the flow's outputs, or a list of them if the flow does not return exactly one row.
type flowTool struct {
	info     tool.Info
	declared *spec.FlowTool
	flow     *spec.Flow
	run      Flow
}

// flow makes a FlowTool.
func (f *Factory) flow(t *spec.FlowTool) (tool.Tool, error) {
	flow := t.Flow.To
	if flow == nil || f.opts.Flow == nil {
		return nil, fmt.Errorf("tool %s: the flow is not linked", t.ID)
	}
	inputs := make([]*spec.Variable, len(flow.Inputs))
	for i, ref := range flow.Inputs {
		if inputs[i] = ref.To; ref.To == nil {
			return nil, fmt.Errorf("tool %s: input %s of flow %s is not linked", t.ID, ref.ID, flow.ID)
		}
	}
	base := spec.ToolBase{ID: t.ID, Name: t.Name, Description: t.Description}
	if base.Name == "" {
		base.Name = flow.ID
	}
	if base.Description == "" {
		base.Description = flow.Description
	}
	return &flowTool{tool.Describe(&base, inputs), t, flow, f.opts.Flow}, nil
}

// Info describes the tool.
func (t *flowTool) Info() tool.Info { return t.info }

type depthKey struct{}

// Call runs the flow on one row.
func (t *flowTool) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := tool.ConvertArgs(t.info, args, value.Assign)
	if err != nil {
		return nil, err
	}
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth >= maxDepth {
		return nil, t.failed(fmt.Errorf("FlowTools are nested more than %d deep", maxDepth))
	}
	call := FlowCall{Flow: t.flow, Inputs: make([]any, len(t.info.Inputs)), Caller: tool.CallerOf(ctx), Tool: t.declared}
	for i, in := range t.info.Inputs {
		call.Inputs[i] = value.Unset
		if v, ok := given[in.ID]; ok {
			call.Inputs[i] = v
		}
	}
	var rows []any
	var failed error
	err = t.run(context.WithValue(ctx, depthKey{}, depth+1), call, func(outputs []any, why error) error {
		if why != nil && failed == nil {
			failed = why
		}
		rows = append(rows, t.row(outputs))
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, t.failed(err)
	case failed != nil:
		return nil, t.failed(failed)
	case len(rows) == 1:
		return rows[0], nil
	}
	return rows, nil
}

// row returns an object of the flow's outputs.
func (t *flowTool) row(outputs []any) any {
	fields := make([]value.Field, 0, len(outputs))
	for i, v := range outputs {
		if v == value.Unset {
			v = nil
		}
		fields = append(fields, value.Field{Name: t.flow.Outputs[i].ID, Value: v})
	}
	return value.NewRecord("", fields...)
}

func (t *flowTool) failed(err error) error {
	return &tool.FailedError{Tool: t.info.ID, Message: fmt.Sprintf("flow %s: %s", t.flow.ID, httpx.SingleLine(err.Error(), 1000)), Err: err}
}
