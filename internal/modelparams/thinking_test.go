package modelparams_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// TestThinking: one key sets how much each model reasons, by the parameters that it takes, or the
// error says what it takes.
func TestThinking(t *testing.T) {
	for _, c := range []struct {
		model spec.Model
		want  string // the parameters as JSON, or a part of the error
	}{
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses", Thinking: "max"}, `{"reasoning":{"effort":"max"}}`},
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses", Thinking: "off"}, `{"reasoning":{"effort":"none"}}`},
		{spec.Model{Provider: "openai", ModelID: "gpt-5.4", API: "chat", Thinking: "max"}, `{"reasoning_effort":"xhigh"}`},
		{spec.Model{Provider: "openai", ModelID: "gpt-6-astra", Thinking: "off"}, `always reasons; low is the least`},
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", Thinking: "8000"}, `takes no number of tokens; write low, medium, high or max`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-opus-5-5", Thinking: "high"}, `{"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-5-5", Thinking: "off"}, `{"thinking":{"type":"between_tools"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-opus-4-8", Thinking: "off"}, `{"thinking":{"type":"disabled"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-haiku-4-5", Thinking: "medium"}, `{"thinking":{"budget_tokens":8192,"type":"enabled"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", Thinking: "medium"}, `{"thinking":{"budget_tokens":8192,"type":"enabled"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", Thinking: "500"}, `takes from 1024 to 63999 tokens`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-opus-5-5", Thinking: "9000"}, `takes no number of tokens`},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-4-argon", Thinking: "max"}, `{"thinkingConfig":{"thinkingLevel":"high"}}`},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-3.8-flash", Thinking: "off"}, `always reasons`},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-2.5-flash-lite", Thinking: "off"}, `{"thinkingConfig":{"thinkingBudget":0}}`},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-2.5-flash-lite", Thinking: "30000"}, `from 512 to 24576 tokens`},
		{spec.Model{Provider: "aws-bedrock", ModelID: "us.anthropic.claude-opus-5-5", Thinking: "low"}, `{"additionalModelRequestFields":{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}}`},
		{spec.Model{Provider: "aws-bedrock", ModelID: "amazon.nova-2-lite-v1:0", Thinking: "high"}, `{"additionalModelRequestFields":{"reasoningConfig":{"maxReasoningEffort":"high","type":"enabled"}}}`},
		{spec.Model{Provider: "openai", BaseURL: "https://api.deepseek.com", ModelID: "deepseek-v4-pro", Thinking: "medium"}, `{"reasoning_effort":"high","thinking":{"type":"enabled"}}`},
		{spec.Model{Provider: "ollama", ModelID: "some-model", Thinking: "off"}, `{"think":false}`},
		{spec.Model{Provider: "openai", BaseURL: "http://localhost:8000/v1", ModelID: "some-model", Thinking: "low"}, `{"reasoning_effort":"low"}`},
		{spec.Model{Provider: "openai", ModelID: "gpt-5-search-api", Thinking: "off"}, `null`},
		{spec.Model{Provider: "openai", ModelID: "gpt-5-search-api", Thinking: "low"}, `the model does not reason`},
		{spec.Model{Provider: "openai", ModelID: "gpt-4.1", Thinking: "off"}, `null`},
		{spec.Model{Provider: "openai", ModelID: "gpt-4.1", Thinking: "low"}, `the model does not reason`},
		{spec.Model{Provider: "openai", BaseURL: "http://localhost:8000/v1", ModelID: "some-model", Thinking: "2048"}, `write low, medium, high or max`},
		{spec.Model{Provider: "google-ai", ModelID: "some-model", Thinking: "2048"}, `write low, medium, high or max`},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-3-flash-preview", Thinking: "off"}, `cannot stop reasoning; low is the least, and minimal in inference_params`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", Thinking: "200000"}, `takes from 1024 to 63999 tokens`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", Thinking: "4000", InferenceParams: map[string]any{"max_tokens": 1000}}, `4000 tokens for thinking leave none of max_tokens 1000`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", Thinking: "high", InferenceParams: map[string]any{"max_tokens": 16384}}, `leave none of max_tokens 16384`},
		{spec.Model{Provider: "anthropic", ModelID: "claude-opus-5-5", Thinking: "high", InferenceParams: map[string]any{"max_tokens": 10}}, `{"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}}`},
		{spec.Model{Provider: "anthropic", ModelID: "some-model", Thinking: "5000"}, `set max_tokens of inference_params above it`},
		{spec.Model{Provider: "aws-bedrock", ModelID: "us.anthropic.claude-sonnet-4-5-20250929-v1:0", Thinking: "4000", InferenceParams: map[string]any{"inferenceConfig": map[string]any{"maxTokens": 4000}}}, `leave none of inferenceConfig.maxTokens 4000`},
		{spec.Model{Provider: "langchaingo:mistral", ModelID: "x", Thinking: "low"}, `the provider has no setting for it`},
	} {
		params, err := modelparams.Thinking(&c.model)
		got, _ := json.Marshal(params)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s, thinking %s:\ngot  %s\nwant %s", c.model.Provider, c.model.ModelID, c.model.Thinking, got, c.want)
		}
	}
}

// TestOf: thinking is merged with inference_params, which must not set the same.
func TestOf(t *testing.T) {
	m := spec.Model{Provider: "anthropic", ModelID: "claude-opus-5-5", Thinking: "low",
		InferenceParams: map[string]any{"max_tokens": 100, "output_config": map[string]any{"task_budget": 1}}}
	params, err := modelparams.Of(&m)
	got, _ := json.Marshal(params)
	if want := `{"max_tokens":100,"output_config":{"effort":"low","task_budget":1},"thinking":{"type":"adaptive"}}`; err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	m.InferenceParams["output_config"] = map[string]any{"effort": "high"}
	if _, err := modelparams.Of(&m); err == nil || !strings.Contains(err.Error(), "thinking and output_config.effort of inference_params both set") {
		t.Errorf("got %v", err)
	}
}
