package batch_test

import (
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/batch"
)

// filesDocument is a document with a flow that another one runs for each row.
func filesDocument(inner, outer string) string {
	return `id: app
flows:
  - id: main
    variables: [{id: name, type: text}, {id: done, type: text}]
    inputs: [name]
    outputs: [name]
    steps:
      - {type: InvokeFlow, id: call, flow: write, ` + outer + `input_bindings: {name: name}, output_bindings: {name: done}}
  - id: write
    variables: [{id: name, type: text}, {id: number, type: int}]
    inputs: [name]
    outputs: [name]
    steps:
` + inner
}

// TestRun_OneFileOfRows: a file that a run has written is not replaced in the same run, by another step or for another
// row of a flow that a step runs; a repeated attempt may write its file again.
func TestRun_OneFileOfRows(t *testing.T) {
	const writer = "      - {type: FileWriter, id: save, path: {uri: names.csv}, inputs: [name]}\n"
	failing := writer + "      - {type: Transform, id: parse, set: {number: int(name)}}\n"
	twice := strings.Replace(filesDocument(writer, ""), "  - id: write\n", strings.Replace(writer, "save", "again", 1)+"  - id: write\n", 1)
	for name, c := range map[string]struct{ document, input, want, text string }{
		"one row":    {filesDocument(writer, ""), `[{"name":"a"}]`, "", "name\na\n"},
		"two rows":   {filesDocument(writer, ""), `[{"name":"a"},{"name":"b"}]`, "names.csv was written before in this run", "name\na\n"},
		"two steps":  {twice, `[{"name":"a"}]`, "names.csv was written before in this run", "name\na\n"},
		"an attempt": {filesDocument(failing, "retry: {max_attempts: 2, initial_delay: 1ms}, "), `[{"name":"a"}]`, "parse", "name\na\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, _ := run(t, map[string]string{"app.qtype.yaml": c.document}, "", batch.Config{Input: c.input})
			if c.want == "" && strings.Contains(errs, "failed") || !strings.Contains(out+errs, c.want) || name == "an attempt" && strings.Contains(errs, "written before") {
				t.Errorf("no %q in\n%s\n%s", c.want, out, errs)
			}
			if text, err := os.ReadFile("names.csv"); string(text) != c.text || err != nil {
				t.Errorf("the file is %q, %v", text, err)
			}
		})
	}
}

// TestRun_RetryOfFile: retry repeats the attempt to write a file.
func TestRun_RetryOfFile(t *testing.T) {
	document := filesDocument("      - {type: FileWriter, id: save, path: {uri: app.qtype.yaml/names.csv}, retry: {max_attempts: 3, initial_delay: 1ms}, inputs: [name]}\n", "")
	_, errs, _ := run(t, map[string]string{"app.qtype.yaml": document}, "", batch.Config{Input: `[{"name":"a"}]`})
	if !strings.Contains(errs, "tried 3 times") {
		t.Errorf("no attempts in\n%s", errs)
	}
}

// TestRun_RowsHandled: the summary has the rows on which steps have failed that then dropped them or went on, also
// with --quiet.
func TestRun_RowsHandled(t *testing.T) {
	const document = `id: app
flows:
  - id: main
    variables: [{id: text, type: text}, {id: number, type: int}, {id: other, type: int}]
    inputs: [text]
    outputs: [number]
    steps:
      - {type: Transform, id: parse, on_error: skip, set: {number: int(text)}}
      - {type: Transform, id: divide, on_error: continue, set: {other: "12 % number"}}
`
	for _, quiet := range []bool{false, true} {
		_, errs, err := run(t, map[string]string{"app.qtype.yaml": document}, "", batch.Config{Input: `[{"text":"a"},{"text":"0"},{"text":"b"},{"text":"2"}]`, Quiet: quiet})
		if want := "parse: failed on 2 rows, dropped · divide: failed on 1 row, continued without the outputs\n"; err != nil || !strings.Contains(errs, want) {
			t.Errorf("no %q in\n%s, %v", want, errs, err)
		}
	}
}
