package modelparams_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/modelparams"
)

// TestEncode_Numbers: a parameter that is a number has no other value, at any depth. A text with a number is
// left to the server, and so are names that are the user's.
func TestEncode_Numbers(t *testing.T) {
	text := func(s string) map[string]any { return map[string]any{"temperature": s} }
	for name, c := range map[string]struct {
		params map[string]any
		want   string
	}{
		"number":        {map[string]any{"temperature": 0.5, "max_tokens": 5}, ""},
		"no value":      {map[string]any{"temperature": nil}, ""},
		"a number text": {text("0.5"), ""},
		"a word":        {text("warm"), "inference_params: temperature must be a number"},
		"empty":         {text(""), "inference_params: temperature must be a number"},
		"truth":         {map[string]any{"top_p": true}, "inference_params: top_p must be a number"},
		"list":          {map[string]any{"seed": []any{1}}, "inference_params: seed must be a number"},
		"logprobs":      {map[string]any{"logprobs": true}, ""},
		"nested":        {map[string]any{"generationConfig": map[string]any{"thinkingConfig": map[string]any{"thinkingBudget": "much"}}}, "inference_params: generationConfig.thinkingConfig.thinkingBudget must be a number"},
		"duration":      {map[string]any{"options": map[string]any{"num_ctx": 5, "keep_alive": "5m"}, "keep_alive": "5m"}, ""},
		"metadata":      {map[string]any{"metadata": map[string]any{"n": "five"}}, ""},
		"another":       {map[string]any{"reasoning_effort": "high", "stop": []any{"."}}, ""},
	} {
		got := ""
		if _, err := modelparams.ChatCompletions.Encode(c.params); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
