package spec

import (
	"slices"
	"strings"
)

// HostedKind is a kind of tools that providers run: a value of HostedTool.Hosted.
type HostedKind struct {
	Name      string   // in documents
	Doc       string   // what it does, for the manual and the editor
	Providers []string // that have it; models of openai and azure-openai by the Responses API
}

// HostedKinds lists the kinds of hosted tools. The caller must not change the list.
func HostedKinds() []HostedKind {
	return []HostedKind{
		{"web_search", "searches the web", []string{"openai", "azure-openai", "anthropic", "google-ai", "gcp-vertex", "aws-bedrock"}},
		{"web_fetch", "reads pages of the web", []string{"anthropic", "google-ai", "gcp-vertex"}},
		{"code_execution", "runs code that the model writes", []string{"openai", "azure-openai", "anthropic", "google-ai", "gcp-vertex", "aws-bedrock"}},
		{"file_search", "searches files that are stored at the provider", []string{"openai", "azure-openai", "google-ai"}},
		{"image_generation", "makes images", []string{"openai", "azure-openai"}},
		{"google_maps", "looks places up", []string{"google-ai", "gcp-vertex"}},
		{"mcp", "calls a server of the Model Context Protocol from the provider's network", []string{"openai", "azure-openai", "anthropic"}},
		{"tool_search", "searches the tools that are deferred", []string{"openai", "azure-openai", "anthropic"}},
	}
}

// LookupHosted finds a kind by its name.
func LookupHosted(name string) (HostedKind, bool) {
	return findRow(HostedKinds(), func(k HostedKind) bool { return k.Name == name })
}

// HostedConflict returns why a model cannot have the tool; empty if it can.
func (t *HostedTool) HostedConflict(m *Model) string {
	kind, known := LookupHosted(t.Hosted)
	row, callable := callableProvider(m)
	switch {
	case !known || !callable || row.Client == MockClient: // a mock answers without tools
		return ""
	case !slices.Contains(kind.Providers, row.Name):
		return "provider " + row.Name + " has no hosted tool " + t.Hosted
	case row.Name == "openai" || row.Name == "azure-openai":
		return t.openAIConflict(m)
	case t.Hosted == mcpKind && t.Settings["url"] == nil:
		return "hosted tool mcp needs settings with url"
	}
	return ""
}

// openAIConflict is HostedConflict for a model of OpenAI.
func (t *HostedTool) openAIConflict(m *Model) string {
	with := *m
	with.HasHosted = true
	switch {
	case t.Hosted != "web_search" && !with.UsesResponses():
		return "chat completions have no hosted tool " + t.Hosted + "; set `api: responses` if the server has the Responses API"
	case t.Hosted != mcpKind:
		return ""
	case t.Settings["server_label"] == nil || t.Settings["server_url"] == nil && t.Settings["connector_id"] == nil:
		return "hosted tool mcp needs settings with server_label and server_url"
	}
	return ""
}

// AsksApproval reports whether the provider of a model asks for an approval before it calls the tool.
// OpenAI does unless require_approval is never. It is not known for mocks and settings with variables.
func (t *HostedTool) AsksApproval(m *Model) (asks, known bool) {
	row, callable := callableProvider(m)
	if !callable || row.Client == MockClient {
		return false, false
	}
	if t.Hosted != mcpKind || row.Name != "openai" && row.Name != "azure-openai" {
		return false, true
	}
	setting := t.Settings["require_approval"]
	text, isText := setting.(string)
	return text != "never", !isText || !strings.Contains(text, "${")
}

// mcpKind is the kind of hosted tools that needs the address of a server.
const mcpKind = "mcp"

// markHosted marks the models of agents with hosted tools.
func (p *Plan) markHosted() {
	for _, s := range p.Steps {
		agent, ok := s.Step.(*Agent)
		if !ok || agent.Model.To == nil || !slices.ContainsFunc(agent.Tools, func(r Ref[Tool]) bool { _, hosted := r.To.(*HostedTool); return hosted }) {
			continue
		}
		m := agent.Model.To.Base()
		m.HasHosted = true
		for _, ref := range m.Fallbacks {
			if ref.To != nil {
				ref.To.Base().HasHosted = true
			}
		}
	}
}
