package modelparams_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// TestRefusals: what a model refuses depends on the protocol, the reasoning of the request and the
// server; what is not certain is not refused.
func TestRefusals(t *testing.T) {
	type params = map[string]any
	for name, c := range map[string]struct {
		model spec.Model
		tools bool
		want  string // the refused parameters
	}{
		"a value other than the default":     {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"temperature": 0.2}}, want: "temperature"},
		"the default":                        {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"temperature": 1.0}}},
		"translated":                         {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"max_tokens": 100}}},
		"while it does not reason":           {model: spec.Model{Provider: "openai", ModelID: "gpt-5.1", InferenceParams: params{"temperature": 0.2}}},
		"while it reasons":                   {model: spec.Model{Provider: "openai", ModelID: "gpt-5.1", InferenceParams: params{"temperature": 0.2, "reasoning_effort": "low"}}, want: "temperature"},
		"while it reasons by the key":        {model: spec.Model{Provider: "openai", ModelID: "gpt-5.1", Thinking: "low", InferenceParams: params{"temperature": 0.2}}, want: "temperature"},
		"the environment decides whether":    {model: spec.Model{Provider: "openai", ModelID: "gpt-5.1", InferenceParams: params{"temperature": 0.2, "reasoning_effort": "${EFFORT}"}}},
		"the environment decides the value":  {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"temperature": "${HEAT}"}}},
		"null":                               {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"temperature": nil}}},
		"an effort of Responses":             {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses", InferenceParams: params{"reasoning": params{"effort": "minimal"}}}, want: "reasoning.effort"},
		"stop in chat completions":           {model: spec.Model{Provider: "openai", ModelID: "gpt-5", API: "chat", InferenceParams: params{"stop": "END"}}, want: "stop"},
		"what Responses does not have":       {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"stop": "END", "seed": 1, "logit_bias": params{}}}, want: "logit_bias stop seed"},
		"tools while it reasons":             {model: spec.Model{Provider: "openai", ModelID: "gpt-5.4", API: "chat", InferenceParams: params{"reasoning_effort": "low"}}, tools: true, want: "tools"},
		"tools by Responses":                 {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses"}, tools: true},
		"tools without reasoning":            {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "chat", InferenceParams: params{"reasoning_effort": "none"}}, tools: true},
		"a forced tool while thinking":       {model: spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", InferenceParams: params{"tool_choice": params{"type": "any"}, "thinking": params{"type": "enabled", "budget_tokens": 2000}}}, want: "tool_choice"},
		"a forced tool without thinking":     {model: spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", InferenceParams: params{"tool_choice": params{"type": "any"}}}},
		"a type of thinking and its budget":  {model: spec.Model{Provider: "anthropic", ModelID: "claude-opus-5-5", InferenceParams: params{"thinking": params{"type": "enabled", "budget_tokens": 2000}}}, want: "thinking.type thinking.budget_tokens"},
		"in the fields of Bedrock":           {model: spec.Model{Provider: "aws-bedrock", ModelID: "us.anthropic.claude-opus-5-5", InferenceParams: params{"inferenceConfig": params{"temperature": 0.5}}}, want: "inferenceConfig.temperature"},
		"in the fields of Gemini":            {model: spec.Model{Provider: "google-ai", ModelID: "gemini-2.5-pro", InferenceParams: params{"generationConfig": params{"thinkingConfig": params{"thinkingBudget": 0}}}}, want: "generationConfig.thinkingConfig.thinkingBudget"},
		"another server":                     {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", BaseURL: "http://localhost/v1", InferenceParams: params{"temperature": 0.2}}},
		"a server of the environment":        {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol", Elsewhere: "http://localhost/v1", InferenceParams: params{"temperature": 0.2}}},
		"a host with rows of its own":        {model: spec.Model{Provider: "openai", ModelID: "grok-4.5", BaseURL: "https://api.x.ai/v1", InferenceParams: params{"stop": "END"}}, want: "stop"},
		"parameters that are not in request": {model: spec.Model{Provider: "openai", ModelID: "gpt-6-sol"}},
	} {
		var got []string
		for _, r := range modelparams.Refusals(&c.model, c.tools) {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestTwoForms: parameters that set the same are found wherever a protocol has them.
func TestTwoForms(t *testing.T) {
	type params = map[string]any
	for want, given := range map[string]params{
		"max_completion_tokens and max_tokens":                     {"max_tokens": 1, "max_completion_tokens": 2},
		"max_tokens and generationConfig.maxOutputTokens":          {"max_tokens": 1, "generationConfig": params{"maxOutputTokens": 2}},
		"reasoning.effort and reasoning_effort":                    {"reasoning": params{"effort": "low"}, "reasoning_effort": "low"},
		"thinkingConfig.thinkingLevel and thinkingConfig.thinking": {"thinkingConfig": params{"thinkingLevel": "low", "thinkingBudget": 100}},
		"temperature and inferenceConfig.temperature":              {"temperature": 1, "inferenceConfig": params{"temperature": 1}},
		"": {"max_tokens": 1, "reasoning": params{"summary": "auto"}, "reasoning_effort": "low", "thinking": params{"type": "enabled"}, "top_p": 1, "top_k": 4},
	} {
		problems := modelparams.TwoForms(&spec.Model{InferenceParams: given})
		switch {
		case want == "" && len(problems) > 0, want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Text, want)):
			t.Errorf("%v: got %v", given, problems)
		}
	}
}

// TestOverLimit: an answer cannot be longer than what the model writes, and needs room behind the
// thinking.
func TestOverLimit(t *testing.T) {
	type params = map[string]any
	for _, c := range []struct {
		model spec.Model
		want  string
	}{
		{spec.Model{Provider: "anthropic", ModelID: "claude-haiku-4-5", InferenceParams: params{"max_tokens": 64001}}, "at most 64000"},
		{spec.Model{Provider: "anthropic", ModelID: "claude-haiku-4-5", InferenceParams: params{"max_tokens": 64000}}, ""},
		{spec.Model{Provider: "anthropic", ModelID: "claude-haiku-4-5", InferenceParams: params{"max_tokens": 8000, "thinking": params{"type": "enabled", "budget_tokens": 8000}}}, "leaves no token for the answer"},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-3.5-flash-lite", InferenceParams: params{"generationConfig": params{"maxOutputTokens": 1000000}}}, "generationConfig.maxOutputTokens is 1000000"},
	} {
		problems := modelparams.OverLimit(&c.model)
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Text, c.want)) {
			t.Errorf("%s %v: got %v, want %q", c.model.ModelID, c.model.InferenceParams, problems, c.want)
		}
	}
}

// TestUnlisted: efforts, levels and budgets are those of the model.
func TestUnlisted(t *testing.T) {
	type params = map[string]any
	for _, c := range []struct {
		model spec.Model
		want  string
	}{
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"reasoning_effort": "highest"}}, "reasoning_effort highest is not one of the values of gpt-6-sol: none, low"},
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"reasoning_effort": "minimal"}}, ""}, // refused, which Refusals says
		{spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: params{"reasoning_effort": "${EFFORT}"}}, ""},
		{spec.Model{Provider: "openai", ModelID: "gpt-4.1", InferenceParams: params{"reasoning_effort": "low"}}, "reasoning_effort: gpt-4.1 does not reason"},
		{spec.Model{Provider: "openai", ModelID: "gpt-4.1", InferenceParams: params{"reasoning_effort": "none"}}, ""},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-2.5-flash", InferenceParams: params{"thinkingConfig": params{"thinkingBudget": 99999}}}, "takes at most 24576 tokens"},
		{spec.Model{Provider: "google-ai", ModelID: "gemini-2.5-flash", InferenceParams: params{"thinkingConfig": params{"thinkingBudget": -1}}}, ""},
		{spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-4-5", InferenceParams: params{"thinking": params{"type": "enabled", "budget_tokens": 10}}}, "takes at least 1024 tokens"},
	} {
		problems := modelparams.Unlisted(&c.model)
		if c.want == "" && len(problems) > 0 || c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Text, c.want)) {
			t.Errorf("%s %v: got %v, want %q", c.model.ModelID, c.model.InferenceParams, problems, c.want)
		}
	}
}
