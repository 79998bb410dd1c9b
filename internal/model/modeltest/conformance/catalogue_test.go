package conformance_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
)

// refuses reports whether the catalogue has that a model always refuses a parameter, or a value of it.
func refuses(m catalogue.Model, parameter, value string) bool {
	return slices.ContainsFunc(m.Rejected, func(r catalogue.Rejection) bool {
		return slices.Contains(r.Parameters, parameter) && r.When == catalogue.Always && (value == "" || len(r.Values) == 0 || slices.Contains(r.Values, value))
	})
}

// TestRules_AgreeWithCatalogue: the models that a rule is about are those of which the catalogue has the same. The server
// does not read the catalogue, so that an error in it is found.
func TestRules_AgreeWithCatalogue(t *testing.T) {
	rules := map[string]conformance.Rule{}
	for _, r := range conformance.Rules().Rules {
		rules[r.ID] = r
	}
	for _, fact := range []struct {
		provider string
		rules    []string // at least one is about a model with the fact, none about another one
		known    func(catalogue.Model) bool
	}{
		{"openai", []string{"openai-chat-tools"}, func(m catalogue.Model) bool { return m.Reasoning.ChatTools == catalogue.ToolsIfSetOff }},
		{"openai", []string{"openai-chat-tools-never"}, func(m catalogue.Model) bool { return m.Reasoning.ChatTools == catalogue.ToolsNever }},
		{"openai", []string{"openai-chat-tools-5.4"}, func(m catalogue.Model) bool { return m.Reasoning.ChatTools == catalogue.ToolsIfOff }},
		{"openai", []string{"openai-max-tokens"}, func(m catalogue.Model) bool {
			return slices.ContainsFunc(m.Rejected, func(r catalogue.Rejection) bool {
				return r.API == catalogue.ChatCompletions && slices.Contains(r.Parameters, "max_tokens")
			})
		}},
		{"anthropic", []string{"anthropic-bound"}, func(m catalogue.Model) bool { return m.Reasoning.BoundToPrefix }},
		{"anthropic", []string{"anthropic-sampling"}, func(m catalogue.Model) bool { return refuses(m, "temperature", "") }},
		{"anthropic", []string{"anthropic-prefill"}, func(m catalogue.Model) bool { return refuses(m, "prefill", "") }},
		{"anthropic", []string{"anthropic-forced-choice"}, func(m catalogue.Model) bool { return refuses(m, "tool_choice", "any") }},
		{"anthropic", []string{"anthropic-thinking-enabled"}, func(m catalogue.Model) bool { return refuses(m, "thinking.type", "enabled") }},
		{"anthropic", []string{"anthropic-thinking-disabled", "anthropic-thinking-between"}, func(m catalogue.Model) bool { return refuses(m, "thinking.type", "disabled") }},
		{"anthropic", []string{"anthropic-thinking-adaptive"}, func(m catalogue.Model) bool { return refuses(m, "thinking.type", "adaptive") }},
		{"anthropic", []string{"anthropic-max-tokens"}, func(m catalogue.Model) bool { return m.MaxOutput == 128_000 }},
		{"anthropic", []string{"anthropic-max-tokens-4.5"}, func(m catalogue.Model) bool { return m.MaxOutput == 64_000 }},
		{"zai", []string{"glm-tool-choice"}, func(m catalogue.Model) bool { return slices.Equal(m.Tools.ToolChoices, []string{"auto"}) }},
		{"aws-bedrock", []string{"bedrock-bound"}, func(m catalogue.Model) bool { return m.Reasoning.BoundToPrefix }},
		{"aws-bedrock", []string{"bedrock-forced-tool"}, func(m catalogue.Model) bool { return refuses(m, "tool_choice", "any") }},
	} {
		for _, m := range catalogue.All() {
			if m.Provider != fact.provider || m.Kind != catalogue.Chat || m.Status == catalogue.Retired {
				continue
			}
			is := slices.ContainsFunc(fact.rules, func(id string) bool { r := rules[id]; return r.IsAbout(m.ID) })
			if known := fact.known(m); is != known {
				t.Errorf("%v is about %s %s: %v, the catalogue: %v", fact.rules, m.Provider, m.ID, is, known)
			}
		}
	}
}
