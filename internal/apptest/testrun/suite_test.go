package testrun_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// application uses most of what tests refer to.
var application = readApplication()

func readApplication() string {
	text, err := os.ReadFile(filepath.FromSlash("../testdata/app.qtype.yaml"))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// writeFiles writes the application and a test file and returns the path of the
// latter.
func writeFiles(t *testing.T, tests string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"app.qtype.yaml": application, "app.qtype-test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "app.qtype-test.yaml")
}

// runFile runs a test file and returns the codes and messages of its diagnostics.
func runFile(t *testing.T, tests string) []string {
	t.Helper()
	path := writeFiles(t, tests)
	file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
	if file != nil {
		for _, one := range file.Tests(nil) {
			list = append(list, file.Run(t.Context(), one).Diagnostics...)
		}
	}
	got := messagesOf(list)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], filepath.Dir(path)+string(filepath.Separator), "")
	}
	return got
}

func messagesOf(list diag.List) []string {
	var all []string
	for _, d := range list {
		all = append(all, d.Code+" "+d.Message)
	}
	return all
}

func TestRun_Passes(t *testing.T) {
	got := runFile(t, `
models: [{id: lonely, rules: [{text: I am here.}]}]
tools: [{id: find_order, result: {status: on its way}}]
tests:
  - name: The document's own mock answers
    flow: talk
    turns:
      - input: Hello
        expect: ['answer.text == "Hello to you."', 'answer.role == "assistant"']
        memory: [{id: chat_memory, messages: 2, max_tokens: 40, contains: [Hello to you., Be kind.], not_contains: [Bye]}]
        sent: [{id: writer, calls: 1, max_tokens: 30, contains: [Be kind., Hello], not_contains: [to you]}]
      - inputs: {question: Hello again, mood: glad}
        memory: [{id: chat_memory, messages: 4}]
        sent: [{id: writer, calls: 1, contains: [Hello to you., Hello again]}, {id: lonely, calls: 0}]
  - name: The next test remembers nothing
    flow: talk
    turns: [{input: Hello, memory: [{id: chat_memory, messages: 2}]}]
  - name: The test's own mock goes before the file's
    flow: alone
    models: [{id: lonely, rules: [{text: Me first.}]}]
    turns: [{input: hm, expect: ['a == "Me first."']}]
  - {name: The file's mock, flow: alone, turns: [{input: hm, expect: ['a == "I am here."']}]}
  - name: A mocked tool needs no key and no server
    flow: order
    turns: [{input: 7, expect: ['status == "on its way"']}]
  - name: A tool that fails
    flow: order
    tools: [{id: find_order, error: no such order}]
    turns: [{input: 7, fails: 'no such order$'}]
  - {name: A model that fails, flow: alone, models: [{id: lonely, rules: [{error: busy, status: 503}]}], turns: [{input: x, fails: busy}]}
  - name: Many rows
    flow: split
    turns: [{input: [a, bb], rows: 2, expect: ['len(word) < 3']}, {input: [], rows: 0}]
  - {name: Vectors without a provider, flow: embed, turns: [{input: Hi, expect: ['len(vector.vector) == 4']}]}
`)
	if len(got) > 0 {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

func TestRun_Fails(t *testing.T) {
	for tests, want := range map[string][]string{
		`{flow: talk, turns: [{input: Hello, expect: ['answer.text == "Bye"', 'len(answer.text) > 99']}]}`: {"QT803 the condition is false", "QT803 the condition is false"},
		`{flow: talk, turns: [{input: Hello, memory: [{id: chat_memory, messages: 3, max_tokens: 5, contains: [Bye], not_contains: [Hello]}]}]}`: {
			"QT803 the window of chat_memory has 2 messages, not 3", "QT803 the window of chat_memory has 20 tokens, more than 5",
			`QT803 the window of chat_memory does not contain "Bye"`, `QT803 the window of chat_memory contains "Hello"`},
		`{flow: talk, turns: [{input: Hello, sent: [{id: writer, calls: 2, max_tokens: 3, not_contains: [kind]}, {id: lonely, contains: [x]}]}]}`: {
			"QT803 model writer was called 1 time, not 2", "QT803 the request to writer has 12 tokens, more than 3",
			`QT803 the request to writer contains "kind"`, "QT803 model lonely was not called"},
		`{flow: alone, turns: [{input: x}]}`: {"QT804 the turn failed: app.qtype.yaml:35:13: step respond: no mock for model lonely: " +
			"add models: [{id: lonely, rules: …}]"},
		`{flow: talk, turns: [{input: Hello, fails: busy}, {input: Hello, rows: 7}]}`:                               {"QT804 the turn did not fail"},
		`{flow: order, tools: [{id: find_order, error: gone}], turns: [{input: 7, fails: there}]}`:                  {"QT804 the turn failed with another error: step look: tool find_order: gone"},
		`{flow: order, tools: [{id: find_order, result: x}], turns: [{input: seven, fails: zzz}]}`:                  {"QT804 the turn failed with another error: input number: expected int, got \"seven\""},
		`{flow: split, turns: [{input: [a], rows: 2}]}`:                                                             {"QT803 the turn has 1 row, not 2"},
		`{flow: split, turns: [{input: []}]}`:                                                                       {"QT803 the turn has no rows"},
		`{flow: order, tools: [{id: find_order, result: {other: x}}], turns: [{input: 7, expect: [status == ""]}]}`: {`QT807 tool find_order has no output "other"`, `QT804 the turn failed: step look: tool find_order: the result has no "status"; it has other`},
	} {
		got := runFile(t, "tests: [{name: one, "+tests[1:]+"]")
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tests, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestRun_BlocksServers checks that a tool without a mock cannot call a server, not
// even a local one.
func TestRun_BlocksServers(t *testing.T) {
	text := strings.Replace(application, "auth: key", "allow_private: true", 1)
	text = strings.Replace(text, "https://orders.example", "http://127.0.0.1:1", 1)
	path := writeFiles(t, "tests: [{name: one, flow: order, turns: [{input: 7}]}]")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "app.qtype.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
	if file == nil {
		t.Fatal(list)
	}
	got := messagesOf(file.Run(t.Context(), file.Tests(nil)[0]).Diagnostics)
	if len(got) != 1 || !strings.Contains(got[0], "a test cannot call servers: add a mock of the tool under tools") {
		t.Errorf("got %q", got)
	}
}

// TestRun_Indexes checks that each test has its own indexes, which remain between turns,
// and that those of the document are not used.
func TestRun_Indexes(t *testing.T) {
	t.Chdir(t.TempDir())
	one := "{name: %s, flow: note, turns: [{input: red apple, expect: [n == 1]}, {input: green apple, expect: [n == 2]}]}"
	if got := runFile(t, "tests: ["+fmt.Sprintf(one, "first")+", "+fmt.Sprintf(one, "second")+"]"); len(got) > 0 {
		t.Error(got)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRun_FlowOfTurn checks that a turn can run another flow than its test, and that its
// inputs and conditions are those of that flow.
func TestRun_FlowOfTurn(t *testing.T) {
	for suite, want := range map[string]string{
		`tests: [{name: x, flow: talk, turns: [{flow: note, input: red apple, expect: [n == 1]}, {input: Hello}, {flow: note, input: green apple, expect: [n == 2]}]}]`: "",
		`tests: [{name: x, turns: [{flow: note, input: red apple, expect: [n == 1]}]}]`:                                                                                 "",
		`tests: [{name: x, flow: talk, turns: [{flow: nte, input: red apple}]}]`:                                                                                        `QT801 no flow has the id "nte"`,
		`tests: [{name: x, flow: talk, turns: [{flow: note, input: red apple, expect: ['answer.text == ""']}]}]`:                                                        "QT",
		`tests: [{name: x, turns: [{flow: note, input: red apple}, {input: Hello}]}]`:                                                                                   "QT801 the test does not name its flow",
	} {
		got := strings.Join(runFile(t, suite), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", suite, got, want)
		}
	}
}

// TestRules_Examples checks that the wrong example of each rule violates it, and
// that the right one passes.
func TestRules_Examples(t *testing.T) {
	small := "id: app\nmodels:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna, offline: practice}\n" +
		"  - {type: Model, id: practice, provider: mock, rules: [{echo: true}]}\n" +
		"tools: [{type: PythonFunctionTool, id: find_order, name: find_order, description: Finds, module_path: m, function_name: f, outputs: [{id: status, type: text}]}]\nflows:\n  - id: talk\n" +
		"    variables: [{id: question, type: ChatMessage}, {id: answer, type: ChatMessage}]\n    inputs: [question]\n    outputs: [answer]\n" +
		"    steps: [{type: LLMInference, id: reply, model: writer, inputs: [question], outputs: [answer]}]\n"
	for _, rule := range apptest.Rules() {
		for text, broken := range map[string]bool{rule.Wrong: true, rule.Right: false} {
			path := writeFiles(t, text)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "app.qtype.yaml"), []byte(small), 0o600); err != nil {
				t.Fatal(err)
			}
			stale := `{"version": 1, "tests": [{"name": "It answers", "calls": [{"turn": 1, "kind": "chat", "target": "writer", "request": {}, "response": {}}]}]}`
			testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "stale.recordings.json"), []byte(stale), 0o600))
			file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
			if file != nil {
				var outcomes []*testrun.Outcome
				for _, one := range file.Tests(nil) {
					outcomes = append(outcomes, file.Run(t.Context(), one))
					list = append(list, outcomes[len(outcomes)-1].Diagnostics...)
				}
				warnings, err := file.EndRecordings(outcomes, false)
				testkit.Must(t, err)
				list = append(list, warnings...)
			}
			if broken && (len(list) != 1 || list[0].Code != rule.Code) || !broken && len(list) > 0 {
				t.Errorf("%s: %q gives %v", rule.Code, text, list)
			}
		}
	}
}

func TestReports(t *testing.T) {
	good, bad := writeFiles(t, "tests: [{name: 'it <is> & \"was\"', flow: talk, turns: [{input: Hello, expect: ['answer.text == \"<\"']}]}, {name: ok, flow: talk, turns: [{input: Hello}]}]"), writeFiles(t, "tests: 3")
	var reports []testrun.Report
	for _, path := range []string{good, bad} {
		r := testrun.Report{Path: path}
		file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
		if r.Diagnostics = list; file != nil {
			for _, one := range file.Tests(regexp.MustCompile("")) {
				r.Outcomes = append(r.Outcomes, file.Run(t.Context(), one))
			}
		}
		reports = append(reports, r)
	}
	if passed, failed := testrun.Passed(reports); passed != 1 || failed != 2 {
		t.Errorf("%d passed, %d failed", passed, failed)
	}
	var junit bytes.Buffer
	if err := testrun.JUnit(&junit, reports); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure struct {
					Type string `xml:"type,attr"`
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	first := read.Suites[0].Cases[0]
	if read.Tests != 3 || read.Failures != 1 || read.Errors != 1 || first.Name != `it <is> & "was"` || first.Failure.Type != "QT803" || !strings.Contains(first.Failure.Text, "the condition is false") {
		t.Errorf("got report %+v:\n%s", read, junit.String())
	}
	var text bytes.Buffer
	if err := testrun.JSON(&text, reports); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for line := range strings.Lines(text.String()) {
		var one struct {
			Name        string
			Passed      bool
			Diagnostics []struct{ Code string } `json:"faults"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		code := "passed"
		if !one.Passed {
			code = one.Diagnostics[0].Code
		}
		codes = append(codes, code)
	}
	if !slices.Equal(codes, []string{"QT803", "passed", "QT105"}) {
		t.Errorf("the lines say %q:\n%s", codes, text.String())
	}
}

// TestDocumentation runs the test file in docs/testing.md.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	block, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page shows no file of tests")
	}
	small := strings.NewReplacer("id: writer,", "id: assistant,", "model: writer", "model: assistant").Replace(application)
	path := writeFiles(t, block)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "app.qtype.yaml"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	file, list := testrun.Load(t.Context(), path, loader.Options{}, open)
	if file == nil {
		t.Fatal(list)
	}
	for _, one := range file.Tests(nil) {
		if o := file.Run(t.Context(), one); !o.Passed() {
			t.Errorf("%s: %v", o.Name, o.Diagnostics)
		}
	}
}
