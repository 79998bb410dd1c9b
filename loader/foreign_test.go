package loader_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
)

// TestLoad_OtherSystems checks that the file of another system gets one diagnostic, with the command
// that converts it, and that documents with similar keys do not.
func TestLoad_OtherSystems(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"flow.dag.yaml", "inputs: {}\nnodes: []\nx: ${A}\n", "this is a flow of prompt flow, not a document; convert it: qtype convert promptflow flow.dag.yaml"},
		{"basic.prompty", "---\nname: a\n---\nsystem:\nhi\n", "convert it: qtype convert promptflow basic.prompty"},
		{"App.java", "class App {\n\tint a;\n}\n", "qtype convert langchain4j App.java"},
		{"agent.py", "def f():\n    return 1\n", "qtype convert langgraph agent.py"},
		{"project.yaml", "utility_agents: []\n", "qtype convert airefinery project.yaml"},
		{"w.json", `{"id": "w", "start": "A", "states": []}`, "qtype convert xflow w.json"},
		{"api.yaml", "openapi: 3.1.0\ninfo: {title: A}\n", "qtype convert api api.yaml"},
		{"agent.yaml", "version: 2\nagents: {root: {instruction: Be kind.}}\n", "this is a docker-agent file, not a document; qtype convert has no kind for it"},
		{"agents.yaml", "writer: {role: a, goal: b, backstory: c}\n", "this is a file of CrewAI agents"},
		{"compose.yaml", "services: {}\n", "this is a Docker Compose file"},
		{"app.yaml", "id: app\nmodels: []\nagents: []\n", ""},
		{"app.yaml", "id: app\nflows: []\nnodes: []\ninputs: []\n", ""},
	} {
		_, list := loader.LoadBytes(t.Context(), c.name, []byte(c.text), loader.Options{NoDotEnv: true})
		got := list.Error()
		if len(list) > 0 {
			got += "; " + list[0].Hint
		}
		if is := strings.Contains(got, "this is a"); is != (c.want != "") || c.want != "" && (len(list) != 1 || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q is not in %q", c.name, c.want, got)
		}
	}
}
