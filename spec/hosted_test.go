package spec_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// Hosted tools of OpenAI need the Responses API, which the own service has.
func TestHostedTool_HostedConflict(t *testing.T) {
	server := map[string]any{"server_label": "shop", "server_url": "https://shop.example/mcp"}
	for name, c := range map[string]struct {
		tool  spec.HostedTool
		model spec.Model
		want  string // empty for none
	}{
		"own service":           {spec.HostedTool{Hosted: "code_execution"}, spec.Model{Provider: "openai", ModelID: "gpt-4o"}, ""},
		"declared chat":         {spec.HostedTool{Hosted: "code_execution"}, spec.Model{Provider: "openai", ModelID: "gpt-4o", API: "chat"}, "chat completions have no hosted tool code_execution"},
		"another server":        {spec.HostedTool{Hosted: "file_search"}, spec.Model{Provider: "openai", ModelID: "gpt-4o", BaseURL: "http://gateway.local/v1"}, "api: responses"},
		"a server that has it":  {spec.HostedTool{Hosted: "file_search"}, spec.Model{Provider: "openai", ModelID: "gpt-4o", BaseURL: "http://gateway.local/v1", API: "responses"}, ""},
		"search by chat":        {spec.HostedTool{Hosted: "web_search"}, spec.Model{Provider: "openai", ModelID: "gpt-4o", API: "chat"}, ""},
		"an earlier protocol":   {spec.HostedTool{Hosted: "code_execution"}, spec.Model{Provider: "azure-openai", ModelID: "gpt-4o", APIVersion: "2024-10-21"}, "chat completions"},
		"mcp":                   {spec.HostedTool{Hosted: "mcp", Settings: server}, spec.Model{Provider: "openai", ModelID: "gpt-4o"}, ""},
		"mcp without settings":  {spec.HostedTool{Hosted: "mcp"}, spec.Model{Provider: "openai", ModelID: "gpt-4o"}, "server_label and server_url"},
		"mcp without a server":  {spec.HostedTool{Hosted: "mcp"}, spec.Model{Provider: "anthropic", ModelID: "claude-opus-5"}, "needs settings with url"},
		"of another provider":   {spec.HostedTool{Hosted: "web_fetch"}, spec.Model{Provider: "openai", ModelID: "gpt-4o"}, "has no hosted tool web_fetch"},
		"of another provider 2": {spec.HostedTool{Hosted: "web_fetch"}, spec.Model{Provider: "google-ai", ModelID: "gemini-3.8-flash"}, ""},
	} {
		got := c.tool.HostedConflict(&c.model)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An agent with a hosted tool decides the API of its model.
func TestFlow_SetPlan_MarksModels(t *testing.T) {
	m, spare, other := &spec.Model{Provider: "openai", ModelID: "gpt-4o"}, &spec.Model{Provider: "openai", ModelID: "gpt-4o"}, &spec.Model{Provider: "openai", ModelID: "gpt-4o"}
	m.Fallbacks = []spec.Ref[spec.ModelEntity]{{To: spare}}
	agent := &spec.Agent{Model: spec.Ref[spec.ModelEntity]{To: m}, Tools: []spec.Ref[spec.Tool]{{To: &spec.HostedTool{Hosted: "code_execution"}}}}
	plain := &spec.Agent{Model: spec.Ref[spec.ModelEntity]{To: other}}
	f := &spec.Flow{Steps: []*spec.StepItem{{Step: agent}, {Step: plain}}}
	f.SetPlan()
	if !m.UsesResponses() || !spare.UsesResponses() || other.UsesResponses() {
		t.Errorf("the Responses API: %v, %v, %v", m.UsesResponses(), spare.UsesResponses(), other.UsesResponses())
	}
}
