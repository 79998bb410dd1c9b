package testrun_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// effectsApplication has one flow for each kind of effect. FOLDER is that of the document.
const effectsApplication = `id: effects
tools:
  - {type: CommandTool, id: start, name: start, description: Starts a program, program: sh, args: [-c, "touch FOLDER/started; echo '\"done\"'"], outputs: [{id: r, type: text}]}
  - {type: PythonFunctionTool, id: python, name: python, description: Calls Python, module_path: os, function_name: getcwd, outputs: [{id: r, type: text}]}
  - {type: MCPTool, id: server, command: touch, args: [FOLDER/started]}
models: [{type: Model, id: m, provider: mock}]
flows:
  - {id: read, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: FileSource, id: load, path: {uri: FOLDER/in.csv}, outputs: [a]}]}
  - {id: write, variables: [{id: q, type: text}], inputs: [q], outputs: [q], steps: [{type: FileWriter, id: save, path: {uri: FOLDER/out.csv}, inputs: [q]}]}
  - {id: query, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: SQLSource, id: select, connection: "sqlite:///:memory:", query: "select 'x' as a", outputs: [a]}]}
  - {id: documents, variables: [{id: q, type: 'text?'}, {id: d, type: RAGDocument}], inputs: [q], outputs: [d], steps: [{type: DocumentSource, id: pages, reader_module: directory, args: {input_dir: FOLDER}, outputs: [d]}]}
  - {id: command, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: InvokeTool, id: call, tool: start, output_bindings: {r: a}}]}
  - {id: function, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: InvokeTool, id: call_python, tool: python, output_bindings: {r: a}}]}
  - {id: agent, variables: [{id: q, type: text}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: Agent, id: ask, model: m, tools: [server], inputs: [q], outputs: [a]}]}
  - {id: outer, variables: [{id: q, type: 'text?'}, {id: a, type: text}], inputs: [q], outputs: [a], steps: [{type: InvokeFlow, id: inner, flow: read, input_bindings: {q: q}, output_bindings: {a: a}}]}
`

// runEffects runs a test of one flow, and returns its diagnostics and the files that exist
// after it.
func runEffects(t *testing.T, flow, keys string, allow bool) (messages, files string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"app.qtype.yaml":      strings.ReplaceAll(effectsApplication, "FOLDER", folder),
		"app.qtype-test.yaml": "tests:\n  - {name: it, flow: " + flow + ", " + keys + " turns: [{inputs: {q: hello}}]}\n",
		"in.csv":              "a\nx\n",
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	reports, err := qtype.Test(t.Context(), []string{folder}, qtype.TestOptions{AllowEffects: allow, Names: regexp.MustCompile("it")})
	testkit.Must(t, err)
	for _, r := range reports {
		for _, d := range r.Diagnostics {
			messages += d.Error() + "\n"
		}
		for _, o := range r.Outcomes {
			for _, d := range o.Diagnostics {
				messages += d.Error() + "\n"
			}
		}
	}
	for _, name := range []string{"started", "out.csv"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			files += name
		}
	}
	return messages, files
}

func TestEffects(t *testing.T) {
	for flow, c := range map[string]struct{ id, kind, want string }{
		"read":      {"load", "FileSource", "step load (FileSource) reads files, which tests may not; put its files in a folder and write fixtures: with its path, or, if it should, write allow: [load]"},
		"write":     {"save", "FileWriter", "step save (FileWriter) writes files"},
		"query":     {"select", "SQLSource", "step select (SQLSource) queries a database"},
		"documents": {"pages", "DocumentSource", "step pages (DocumentSource) reads files, servers or databases"},
		"command":   {"start", "CommandTool", "step call: tool start starts the program sh, which tests may not; add a mock: tools: [{id: start, result: …}], or write allow: [start]"},
		"outer":     {"load", "FileSource", "step load (FileSource) reads files"},
	} {
		if got, files := runEffects(t, flow, "", false); !strings.Contains(got, c.want) || files != "" {
			t.Errorf("%s: %q, files %q, want %q", flow, got, files, c.want)
		}
		for _, name := range []string{c.id, c.kind} {
			if got, _ := runEffects(t, flow, "allow: ["+name+"],", false); got != "" {
				t.Errorf("%s with allow: [%s]: %q", flow, name, got)
			}
		}
		if got, _ := runEffects(t, flow, "", true); got != "" {
			t.Errorf("%s with --allow-effects: %q", flow, got)
		}
	}
	for flow, want := range map[string]string{
		"function": "step call_python: tool python starts the program python",
		"agent":    "step ask: tool server starts the program touch",
	} {
		if got, files := runEffects(t, flow, "", false); !strings.Contains(got, want) || files != "" {
			t.Errorf("%s: %q, files %q, want %q", flow, got, files, want)
		}
	}
}

func TestEffects_Mock(t *testing.T) {
	if got, files := runEffects(t, "command", "tools: [{id: start, result: {r: x}}],", false); got != "" || files != "" {
		t.Errorf("%q, files %q", got, files)
	}
}

func TestEffects_UnknownName(t *testing.T) {
	got, _ := runEffects(t, "read", "allow: [laod],", false)
	if !strings.Contains(got, `no step or tool has the id "laod"; did you mean "load"?`) {
		t.Error(got)
	}
}
