package mcpserver_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// serveAssistant returns the address of the server for assistants, with a folder.
func serveAssistant(t testing.TB, folder string) *mcpserver.Server {
	t.Helper()
	o := mcpserver.AssistantOptions{Version: "1", Schema: qtype.Schema(), Rules: slices.Concat(lint.Rules(), convert.Rules())}
	if folder != "" {
		root, err := os.OpenRoot(folder)
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, root.Close()) })
		o.Folder = root
	}
	s, err := mcpserver.Assistant(o)
	testkit.Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// recorded is the session of a client with the Python implementation.
func recorded(t *testing.T, kind string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(testkit.ReadFile(t, "testdata/original-session.txt")) {
		if rest, ok := strings.CutPrefix(line, kind+" "); ok {
			lines = append(lines, strings.TrimRight(rest, "\n"))
		}
	}
	if len(lines) == 0 {
		t.Fatalf("the recording has no line %s", kind)
	}
	return lines
}

// declarationDifferences are the keys of declarations that differ from those of the
// Python implementation, with the reasons.
var declarationDifferences = map[string]string{
	"convert_api_to_tools.description":    "no URL is fetched, and the text itself can be passed",
	"convert_python_to_tools.description": "the module is parsed, not imported, and must be below the folder",
	"get_component_schema.description":    "one of the components that it names as common is a memory",
	"get_documentation.description":       "the pages have other names",
	"list_documentation.description":      "the pages are in other folders",
	"get_example.description":             "the examples have other names",
	"list_examples.description":           "the examples are in other folders",
	"validate_qtype_yaml.description":     "documents are checked without files and environment",
	"validate_qtype_yaml.outputSchema":    "the structured result has the diagnostics in addition to the text",
}

// TestAssistant_Declarations compares the eleven tools of the Python implementation.
func TestAssistant_Declarations(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2025-11-25", nil)
	all, err := s.ListTools(t.Context(), nil)
	testkit.Must(t, err)
	ours := map[string]map[string]any{}
	for _, tool := range all.Tools {
		raw, err := json.Marshal(tool)
		testkit.Must(t, err)
		var declared map[string]any
		testkit.Must(t, json.Unmarshal(raw, &declared))
		ours[tool.Name] = declared
	}
	for _, line := range recorded(t, "TOOL") {
		var original map[string]any
		testkit.Must(t, json.Unmarshal([]byte(line), &original))
		name := original["name"].(string)
		for key, want := range original {
			same := reflect.DeepEqual(ours[name][key], want)
			if reason := declarationDifferences[name+"."+key]; same != (reason == "") {
				t.Errorf("%s.%s: same %v, the reason of the difference is %q\ngot  %v\nwant %v", name, key, same, reason, ours[name][key], want)
			}
		}
		delete(ours, name)
	}
	if len(ours) != 2 || ours["explain"] == nil || ours["diff"] == nil {
		t.Errorf("further tools: %v", ours)
	}
}

// replay is a call of the recording: what must be the same, and what differs.
type replay struct {
	args   string // replaces arguments that the recording has cut off; empty if it has not
	text   string // how the first text begins; empty if it is as recorded
	differ string // why the outcome differs from the recording; empty if isError and the begin of the text are the same
}

const (
	validDocument = `{"yaml_content": "id: ints\nflows:\n  - id: f\n    variables: [{id: n, type: int}, {id: t, type: text}]\n    inputs: [n]\n    outputs: [n, t]\n    steps:\n      - {type: PromptTemplate, id: p, template: 'x {n}', inputs: [n], outputs: [t]}\n"}`
	leakDocument  = `{"yaml_content": "id: x\ndescription: ${HOME}\nflows:\n - id: f\n   description: !include_raw /etc/hostname\n   variables: [{id: a, type: text}]\n   outputs: [a]\n   steps: [{type: PromptTemplate, id: p, template: a, outputs: [a]}]\n"}`
)

// replays has an entry for each recorded call, in order.
var replays = []replay{
	{text: "APIKeyAuth", differ: "the components are those of this version's schema; like there, each is a text"},
	{text: "{\n  \"properties\": {", differ: "this version's schema of the component; like there, it is an object and its JSON"},
	{}, // an unknown component
	{text: "README.md", differ: "the pages are those of this version"},
	{text: "Error executing tool get_documentation: there is no documentation file 'components/Flow.md'", differ: "the page has another name: reference/flow.md"},
	{}, // a path outside of the folder
	{text: "agent_tools/app.qtype-eval.yaml", differ: "the examples are those of this version"},
	{text: "Error executing tool get_example: there is no example file 'tutorials/01_hello_world.qtype.yaml'", differ: "the example has another name"},
	{text: "{\n  \"title\": ", differ: "the pages are those of this version"},
	{text: "{\n  \"title\": ", differ: "a query is words, so no query is a syntax error"},
	{args: validDocument},
	{text: "❌ Validation Error: document:4:11: the flow \"f\" has no steps [QT310]", differ: "a diagnostic has a position and a code"},
	{text: "❌ Validation Error: document:3:14: cannot include \"/etc/hostname\": this document may not read files", differ: "includes are not read"},
	{text: "❌ Validation Error: document:2:27: cannot include \"/etc/hostname\": this document may not read files", differ: "includes are not read; the original inserts the file"},
	{args: leakDocument, text: "Error executing tool visualize_qtype_architecture: visualization failed: document:5:30: cannot include", differ: "includes are not read; the original inserts the file"},
	{text: "Error executing tool convert_api_to_tools: API conversion failed: api_spec:3:", differ: "the same error in the words of this loader"},
	{text: "Error executing tool convert_python_to_tools: Python module conversion failed: no module 'mytools2' below the working directory", differ: "the module is searched for below the folder only"},
}

// TestAssistant_Replay repeats the calls of a client of the Python implementation.
func TestAssistant_Replay(t *testing.T) {
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(folder+"/pet.yaml", []byte("openapi: 3.0.0\ninfo:\n  description: a: b\n"), 0o600))
	s := connect(t, serveHTTP(t, serveAssistant(t, folder)), "", "2025-11-25", nil)
	calls := recorded(t, "CALL")
	if len(calls) != len(replays) {
		t.Fatalf("the recording has %d calls, the table %d", len(calls), len(replays))
	}
	for i, line := range calls {
		name, rest, _ := strings.Cut(line, " ")
		args, original, _ := strings.Cut(rest, " -> ")
		r := replays[i]
		if r.args != "" {
			args = r.args
		}
		got, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		testkit.Must(t, err)
		checkReplay(t, name, got, original, r)
	}
}

// checkReplay compares a result with the recorded one, of which only the begin is known.
func checkReplay(t *testing.T, name string, got *sdk.CallToolResult, original string, r replay) {
	t.Helper()
	if len(got.Content) == 0 {
		t.Errorf("%s: no content", name)
		return
	}
	text := resultOf(got).Text
	_, begin, _ := strings.Cut(original, `"text":`)
	var want string
	if err := json.NewDecoder(strings.NewReader(begin)).Decode(&want); err != nil { // it is cut off
		want = strings.ReplaceAll(strings.TrimPrefix(begin, `"`), `\n`, "\n")
	}
	if r.text != "" {
		want = r.text
	}
	if !strings.HasPrefix(text, want[:min(len(want), 90)]) {
		t.Errorf("%s: got %q, want %q (%s)", name, text[:min(len(text), 200)], want, r.differ)
	}
	wantError := strings.HasPrefix(want, "Error executing tool")
	if got.IsError != wantError || !got.IsError && got.StructuredContent == nil {
		t.Errorf("%s: got error %v, structured %v", name, got.IsError, got.StructuredContent)
	}
	if (r.text == "") != (r.differ == "") {
		t.Errorf("%s: a difference needs a reason, and a reason a difference", name)
	}
}

// Lists are one text for each item, as in the recording, and {"result": […]}.
func TestAssistant_Lists(t *testing.T) {
	s := connect(t, serveHTTP(t, serveAssistant(t, "")), "", "2025-11-25", nil)
	for _, name := range []string{"list_components", "list_documentation", "list_examples"} {
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name})
		testkit.Must(t, err)
		items := list(r.StructuredContent.(object)["result"])
		if len(items) < 8 || len(items) != len(r.Content) {
			t.Errorf("%s: %d items, %d texts", name, len(items), len(r.Content))
		}
	}
	resources, err := s.ListResources(t.Context(), nil)
	testkit.Must(t, err)
	prompts, err := s.ListPrompts(t.Context(), nil)
	testkit.Must(t, err)
	if len(resources.Resources)+len(prompts.Prompts) != 0 {
		t.Error("there are resources or prompts")
	}
}
