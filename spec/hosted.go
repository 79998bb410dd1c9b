package spec

import "slices"

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
	}
	return ""
}
