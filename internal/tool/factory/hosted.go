package factory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// hostedTool is a tool that the provider of a model runs: it is offered, and never called here.
type hostedTool struct{ info tool.Info }

// hosted makes a HostedTool.
func (f *Factory) hosted(t *spec.HostedTool) (tool.Tool, error) {
	info := tool.Describe(t.Common(), nil)
	info.Name, info.Hosted = cmp.Or(info.Name, t.ID), t.Hosted
	if len(t.Settings) > 0 {
		raw, err := json.Marshal(t.Settings)
		if err != nil {
			return nil, fmt.Errorf("tool %s: settings cannot be encoded as JSON", t.ID)
		}
		info.Settings = raw
	}
	return &hostedTool{info}, nil
}

// Info describes the tool.
func (h *hostedTool) Info() tool.Info { return h.info }

// Call is an error: calls do not reach this program.
func (h *hostedTool) Call(context.Context, map[string]any) (any, error) {
	return nil, &tool.FailedError{Tool: h.info.ID, Message: fmt.Sprintf("the provider of the model runs %s; it cannot be called here", h.info.Hosted)}
}
