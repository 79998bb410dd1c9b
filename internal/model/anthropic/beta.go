package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
)

// betaHeader is the header in which a request names the features that are not yet general.
const betaHeader = "Anthropic-Beta"

// The beta features that this client uses itself.
const (
	bindingBeta = "thinking-binding-controls-2026-08-01"
	mcpBeta     = "mcp-client-2025-11-20"
)

// betas are the features that parameters need: by the name of the parameter and, where only a part
// of its values needs the feature, by a text in its JSON.
var betas = [...]struct{ parameter, text, feature string }{
	{"context_management", `"type":"clear_`, "context-management-2025-06-27"},
	{"context_management", `"type":"compact_`, "compact-2026-01-12"},
	{"compaction", "", "compact-2026-09-04"},
	{"fallbacks", "", "server-side-fallback-2026-07-01"},
	{"mcp_servers", "", mcpBeta},
	{"diagnostics", "", "cache-diagnosis-2026-04-07"},
	{"speed", `"fast"`, "fast-mode-2026-02-01"},
	{"thinking", `"block_binding"`, bindingBeta},
	{"thinking", `"display":"updates"`, "thinking-display-updates-2026-08-18"},
	{"output_config", `"task_budget"`, "task-budgets-2026-03-13"},
}

// betasOf returns the features that the parameters of a document need.
func betasOf(params map[string]json.RawMessage) []string {
	var list []string
	for _, b := range betas {
		if raw, ok := params[b.parameter]; ok && string(raw) != "null" && strings.Contains(string(raw), b.text) && !slices.Contains(list, b.feature) {
			list = append(list, b.feature)
		}
	}
	return list
}
