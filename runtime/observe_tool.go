package runtime

import (
	"context"

	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// observedTool reports the calls of a tool as operations.
type observedTool struct{ tool.Tool }

// observeTool returns t with its calls reported; nil for nil. A Set remains a Set.
func observeTool(t tool.Tool) tool.Tool {
	set, many := t.(tool.Set)
	switch {
	case t == nil:
		return nil
	case many:
		observed := &observedSet{observedTool{set}, set}
		if changing, ok := set.(tool.ChangingSet); ok {
			return &observedChangingSet{observed, changing}
		}
		return observed
	}
	return &observedTool{t}
}

// Check is that of a Preflighter; nil for other tools.
func (t *observedTool) Check(ctx context.Context) error {
	if p, ok := t.Tool.(tool.Preflighter); ok {
		return p.Check(ctx)
	}
	return nil
}

// Call calls the tool, and reports it if the run has observers.
func (t *observedTool) Call(ctx context.Context, args map[string]any) (any, error) {
	if !steps.Observed(ctx) {
		return t.Tool.Call(ctx, args)
	}
	info := t.Info()
	ctx, end := steps.Observe(ctx, &steps.Operation{Kind: steps.OperationTool, ID: info.ID, Tool: &info,
		Arguments: args, CallID: tool.CallerOf(ctx).CallID})
	r := &steps.OperationResult{}
	defer end(r)
	result, err := t.Tool.Call(ctx, args)
	r.Returned, r.Err = result, err
	return result, err
}

// observedSet is a Set whose tools report their calls.
type observedSet struct {
	observedTool
	set tool.Set
}

// Tools returns the tools of the Set.
func (s *observedSet) Tools(ctx context.Context) ([]tool.Tool, error) {
	tools, err := s.set.Tools(ctx)
	observed := make([]tool.Tool, len(tools))
	for i, t := range tools {
		observed[i] = observeTool(t)
	}
	return observed, err
}

// observedChangingSet is an observedSet whose tools may change.
type observedChangingSet struct {
	*observedSet
	changing tool.ChangingSet
}

// Revision is that of the Set.
func (s *observedChangingSet) Revision() int { return s.changing.Revision() }
