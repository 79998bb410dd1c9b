package loader

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// foreignFile is a kind of file of another system, which people pass in place of a document.
type foreignFile struct {
	system     string   // with its article
	kind       string   // of qtype convert; empty if there is none
	extensions []string // of files; nil for any
	keys       []string // that the root has, all of them; "a|b" for one of them
	items      []string // that the first value of the root has, a mapping; nil for any
}

// foreignFiles is the table of files. The first row that fits decides.
func foreignFiles() []foreignFile {
	return []foreignFile{
		{system: "a Prompty file", kind: "promptflow", extensions: []string{".prompty"}},
		{system: "a Java file", kind: "langchain4j", extensions: []string{".java", ".properties"}},
		{system: "a Python file", kind: "langgraph", extensions: []string{".py"}},
		{system: "an OpenAPI file", kind: "api", keys: []string{"openapi|swagger", "paths|info"}},
		{system: "a flow of prompt flow", kind: "promptflow", keys: []string{"nodes", "inputs|outputs|node_variants"}},
		{system: "a project file of AI Refinery", kind: "airefinery", keys: []string{"utility_agents|super_agents|memory_config|orchestrator"}},
		{system: "a workflow of xFlow", kind: "xflow", keys: []string{"states", "start|specVersion|functions"}},
		{system: "a langgraph.json", kind: "langgraph", keys: []string{"graphs", "dependencies|env|python_version"}},
		{system: "a file of settings of LangChain4j", kind: "langchain4j", keys: []string{"langchain4j|quarkus"}},
		{system: "a docker-agent file", keys: []string{"agents", "version|models|metadata"}},
		{system: "a file of CrewAI agents", items: []string{"role", "goal", "backstory"}},
		{system: "a file of CrewAI tasks", items: []string{"description", "expected_output"}},
		{system: "an n8n workflow", keys: []string{"nodes", "connections"}},
		{system: "a Dify application", keys: []string{"app", "kind", "workflow|model_config"}},
		{system: "a Haystack pipeline", keys: []string{"components", "connections"}},
		{system: "a promptfoo configuration", kind: "promptfoo", keys: []string{"prompts", "providers"}},
		{system: "an eval of OpenAI", kind: "openai-evals", keys: []string{"testing_criteria"}},
		{system: "a Docker Compose file", keys: []string{"services"}},
		{system: "a Kubernetes manifest", keys: []string{"apiVersion", "kind"}},
	}
}

// explainForeign replaces the diagnostics of a file of another system by one that names it.
func (f *loadState) explainForeign(file *source.File, path string, root *node) bool {
	for _, row := range foreignFiles() {
		if !row.fits(path, root) {
			continue
		}
		at := root.head()
		if at.File == nil {
			at = source.Span{File: file, Start: source.Pos{Line: 1, Column: 1}, End: source.Pos{Line: 1, Column: 2}}
		}
		d := ruleEmpty.At(at, "this is %s, not a document", row.system)
		if row.kind != "" {
			d = d.WithHint("convert it: qtype convert %s %s", row.kind, filepath.Base(path))
		} else {
			d = d.WithHint("qtype convert has no kind for it; qtype init writes a document to begin with")
		}
		f.diags.list = diag.List{d}
		return true
	}
	return false
}

// fits reports whether a file is of the kind.
func (row foreignFile) fits(path string, root *node) bool {
	if row.extensions != nil {
		return slices.Contains(row.extensions, strings.ToLower(filepath.Ext(path)))
	}
	if root.kind != mapping || len(root.pairs) == 0 || root.has("flows") || row.kind == "" && root.has("id") {
		return false
	}
	for _, names := range row.keys {
		if !slices.ContainsFunc(strings.Split(names, "|"), root.has) {
			return false
		}
	}
	if len(row.keys) > 0 {
		return true
	}
	first := root.pairs[0].value
	return first.kind == mapping && !slices.ContainsFunc(row.items, func(key string) bool { return !first.has(key) })
}
