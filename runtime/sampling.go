package runtime

import (
	"context"
	"fmt"
	"maps"

	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// sample calls a model for the server of an MCPTool, as a part of the step that called the
// tool: with its budget, its events and its traces.
func (a *App) sample(ctx context.Context, req mcp.SampleRequest) (*mcp.Sample, error) {
	m, err := a.limitedModel(req.Model, req.MaxTokens)
	if err != nil {
		return nil, err
	}
	answer, truncated, err := steps.Ask(ctx, m, req.Model.ID, model.Request{Messages: req.Messages})
	if err != nil {
		return nil, err
	}
	return &mcp.Sample{Text: answer.Message.Text(), Model: answer.Model, Truncated: truncated}, nil
}

// limitedModel returns a model, with its fallbacks, whose answers have at most max tokens.
func (a *App) limitedModel(declared *spec.Model, max int) (model.Chat, error) {
	if declared == nil {
		return nil, fmt.Errorf("the model of the sampling is not linked")
	}
	var all []model.Chat
	for _, m := range fallbacks(declared) {
		made, err := a.newChat(limited(m, max))
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return model.WithFallbacks(all[0], all[1:]...), nil
}

// limited returns a copy of a model whose answers have at most max tokens. An answer that
// is longer is returned as far as it goes.
func limited(m *spec.Model, max int) *spec.Model {
	c := *m
	c.OnTruncation = "error"
	c.InferenceParams = maps.Clone(m.InferenceParams)
	if c.InferenceParams == nil {
		c.InferenceParams = map[string]any{}
	}
	if own := model.MaxTokens(m.InferenceParams); own > 0 {
		max = min(max, own)
	}
	key := "max_tokens"
	if _, newer := c.InferenceParams["max_completion_tokens"]; newer {
		key = "max_completion_tokens"
	}
	c.InferenceParams[key] = max
	return &c
}
