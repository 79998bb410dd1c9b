package apptest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open is an apptest.Opener.
func open(ctx context.Context, path string) (*spec.Application, diag.List) {
	p, list := authoring.Check(ctx, path, authoring.Options{})
	return p.Document.Application, list
}

// writeFiles writes the application and a test file and returns the path of the
// latter.
func writeFiles(t *testing.T, tests string) string {
	t.Helper()
	application, err := os.ReadFile(filepath.FromSlash("testdata/app.qtype.yaml"))
	testkit.Must(t, err)
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), application, 0o600))
	path := filepath.Join(folder, "app.qtype-test.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(tests), 0o600))
	return path
}

// TestLoad_ReportsAllErrors checks the positions and suggestions of all errors in a
// file.
func TestLoad_ReportsAllErrors(t *testing.T) {
	path := writeFiles(t, `models: [{id: writr, rules: [{echo: true}]}, {id: writer, rules: [{match: '('}]}, {id: vectors, rules: [{echo: true}]}]
tools: [{id: find_order}, {id: find_odrer, result: x}]
tests:
  - {name: a, flow: tlk, turns: [{input: x}]}
  - {name: a, turns: [{input: x}]}
  - name: b
    flow: talk
    turns:
      - {input: x, inputs: {qestion: x}, fails: '['}
      - {input: x, expect: [answr.text == "", answer.text, 'answer.txt == ""', 'answer.text ==', 'size(answer.text) > 1']}
      - {input: x, fails: x, expect: ['true']}
      - {input: x, memory: [{id: chat_memry, mesages: 3}], sent: [{id: writr}]}
      - {input: x, rows: -1}
  - {name: c, flow: talk, truns: []}
  - {flow: talk, turns: [{input: x}]}
  - {name: d, flow: talk, turns: [], session: ''}
  - {name: '', flow: talk, turns: [{input: x, expect: [{a: b}, '1']}, null]}
  - null
`)
	file, list := apptest.Load(t.Context(), path, loader.Options{}, open)
	if file != nil {
		t.Fatal("the file can be run")
	}
	var got []string
	for _, d := range list {
		word := d.Span.File.Line(d.Span.Start.Line)
		if d.Span.End.Line == d.Span.Start.Line {
			word = string([]rune(word)[d.Span.Start.Column-1 : d.Span.End.Column-1])
		}
		got = append(got, strings.TrimSuffix(d.Code+" "+word+" → "+d.Suggestion, " → "))
	}
	want := []string{
		"QT801 writr → writer", "QT802 [{match: '('}]", "QT801 vectors",
		"QT802 find_order", "QT801 find_odrer → find_order",
		"QT801 tlk → talk", "QT801 a", "QT801 a",
		"QT802 input", "QT801 qestion → question", "QT802 '['",
		"QT425 answr → answer", "QT424 answer.text", "QT423 txt", "QT423 =", "QT423 size",
		"QT802 ['true']", "QT801 chat_memry → chat_memory", "QT103 mesages → messages", "QT801 writr → writer", "QT108 -1",
		"QT103 truns → turns", "QT104 f", "QT802 []",
		"QT802 ''", "QT105 {", "QT424 '1'", "QT105 null", "QT105 null",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLoad_InvalidFiles(t *testing.T) {
	for tests, want := range map[string]string{
		"":                                    "QT101 the test file is empty",
		"[a]":                                 "QT101 the test file is a list",
		"tests: [":                            "QT002 a value is expected here",
		"app: none.yaml\ntests: []":           `QT801 application "`,
		"app: app.qtype-test.yaml\ntests: []": "QT103 ",
		"tests: [{name: x, turns: [{input: 1}]}]":                              "QT801 the test does not name its flow",
		"tests: [{name: x, flow: order, turns: [{input: many}]}]":              `QT802 input number: `,
		"tests: [{name: x, flow: order, turns: [{inputs: {number: [1, 2]}}]}]": `QT802 input number: `,
	} {
		_, got := apptest.Load(t.Context(), writeFiles(t, tests), loader.Options{}, open)
		if len(got) == 0 || !strings.HasPrefix(got[0].Code+" "+got[0].Message, want) {
			t.Errorf("%q: got %v, want %s", tests, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.qtype-test.yaml", "a/c.qtype-test.yml", ".hidden/d.qtype-test.yaml", "node_modules/e.qtype-test.yaml", "a/app.qtype.yaml", "other.yaml"} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := apptest.Find([]string{filepath.Join(folder, "other.yaml"), folder, filepath.Join(folder, "a")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i], _ = filepath.Rel(folder, got[i])
	}
	if want := []string{"other.yaml", filepath.FromSlash("a/c.qtype-test.yml"), "b.qtype-test.yaml"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := apptest.Find([]string{filepath.Join(folder, "none")}); err == nil {
		t.Error("Find accepts a missing path")
	}
}

// TestSchema checks valid and invalid files against the schema.
func TestSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(apptest.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("tests.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("tests.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		"tests: [{name: a, turns: [{input: [1], expect: ['x > 1', true], memory: [{id: m, messages: 2}]}]}]": true,
		"app: x.yaml\ntools: [{id: f, result: {a: 1}}]\ntests: [{name: a, turns: [{inputs: {x: 1}}]}]":       true,
		"tests: [{name: a, truns: []}]": false,
		"tests: [{turns: []}]":          false,
		"app: x.yaml":                   false,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestLoad_Inputs checks that required inputs of the flow are reported where a turn cannot run
// without them.
func TestLoad_Inputs(t *testing.T) {
	const lacks = "QT802 the turn lacks the input number (int) of flow order"
	for turn, want := range map[string]string{
		"{}":                                 lacks,
		"{inputs: {}}":                       lacks,
		"{expect: ['true']}":                 lacks,
		"{fails: missing}":                   "",
		"{input: 7}":                         "",
		"{inputs: {number: 7}}":              "",
		"{inputs: {numbr: 7}}":               "QT801 no input of flow order has the id \"numbr\"",
		"{input: 7, rows: 0, expect: ['1']}": "QT802 a turn without rows has no outputs to check",
	} {
		_, list := apptest.Load(t.Context(), writeFiles(t, "tests: [{name: x, flow: order, turns: ["+turn+"]}]"), loader.Options{}, open)
		if got := messages(list); got != want {
			t.Errorf("%s: got %q, want %q", turn, got, want)
		}
	}
}

// TestLoad_Mocks checks that results which a tool cannot have are reported, and do not keep the tests
// from being run.
func TestLoad_Mocks(t *testing.T) {
	for mock, want := range map[string]string{
		"result: {status: sent}":           "",
		"result: sent":                     "",
		"result: null":                     "",
		"error: gone":                      "",
		"result: {}":                       `QT807 the result lacks the output "status" of tool find_order`,
		"result: {status: null}":           `QT807 the result lacks the output "status" of tool find_order`,
		"result: {statsu: sent}":           `QT807 tool find_order has no output "statsu"`,
		"result: {status: sent, other: 1}": `QT807 tool find_order has no output "other"`,
		"result: {status: [sent]}":         `QT807 output status of tool find_order: expected text, got a list of 1`,
	} {
		for turn, want := range map[string]string{"{input: 7}": want, "{input: 7, fails: x}": ""} {
			file, list := apptest.Load(t.Context(), writeFiles(t, "tests: [{name: x, flow: order, tools: [{id: find_order, "+mock+"}], turns: ["+turn+"]}]"), loader.Options{}, open)
			if got := messages(list); got != want || file == nil {
				t.Errorf("%s: got %q, want %q", mock, got, want)
			}
		}
	}
}

// messages returns the codes and messages of diagnostics.
func messages(list diag.List) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Code+" "+d.Message)
	}
	return strings.Join(all, "; ")
}

// TestFind_Link finds the test files in a folder that is named by a link.
func TestFind_Link(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "app.qtype-test.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Skipf("no symbolic links here: %s", err)
	}
	found, err := apptest.Find([]string{link, link + string(filepath.Separator)})
	if want := []string{filepath.Join(link, "app.qtype-test.yaml")}; err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v, want %v", found, err, want)
	}
}
