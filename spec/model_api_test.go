package spec_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// Models of OpenAI that refuse tools in chat completions are called by the Responses API, on the
// service of the provider and unless the document declares another API.
func TestModel_UsesResponses(t *testing.T) {
	effort := func(level string) map[string]any { return map[string]any{"reasoning_effort": level} }
	for name, c := range map[string]struct {
		model spec.Model
		want  bool
	}{
		"tools only without reasoning":   {spec.Model{Provider: "openai", ModelID: "gpt-6-sol"}, true},
		"which the document has set":     {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", InferenceParams: effort("none")}, false},
		"no tools at all":                {spec.Model{Provider: "openai", ModelID: "gpt-6.2-astra", InferenceParams: effort("low")}, true},
		"reasoning is off by default":    {spec.Model{Provider: "openai", ModelID: "gpt-5.4"}, false},
		"reasoning is set":               {spec.Model{Provider: "openai", ModelID: "gpt-5.4", InferenceParams: effort("high")}, true},
		"thinking is set":                {spec.Model{Provider: "openai", ModelID: "gpt-5.4", Thinking: "high"}, true},
		"thinking is off":                {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", Thinking: "off"}, false},
		"tools in chat completions":      {spec.Model{Provider: "openai", ModelID: "gpt-5.2"}, false},
		"an unknown name":                {spec.Model{Provider: "openai", ModelID: "gpt-99"}, false},
		"a region of the service":        {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", BaseURL: "https://eu.api.openai.com/v1"}, true},
		"another server":                 {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", BaseURL: "http://gateway.local/v1"}, false},
		"another server that has it":     {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", BaseURL: "http://gateway.local/v1", API: "responses"}, true},
		"the document declares chat":     {spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "chat"}, false},
		"Azure by the model":             {spec.Model{Provider: "azure-openai", ModelID: "gpt-6-sol", Deployment: "prod", BaseURL: "https://a.openai.azure.com"}, true},
		"Azure with an earlier protocol": {spec.Model{Provider: "azure-openai", ModelID: "gpt-6-sol", APIVersion: "2024-10-21"}, false},
		"a tool that the provider runs":  {spec.Model{Provider: "openai", ModelID: "gpt-4o", HasHosted: true}, true},
		"such a tool at another server":  {spec.Model{Provider: "openai", ModelID: "gpt-4o", HasHosted: true, BaseURL: "http://gateway.local/v1"}, false},
		"another provider":               {spec.Model{Provider: "mistral", ModelID: "gpt-6-sol"}, false},
	} {
		if got := c.model.UsesResponses(); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
