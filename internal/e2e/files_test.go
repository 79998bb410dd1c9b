package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestExample_Orders(t *testing.T) {
	text, err := os.ReadFile("examples/orders/app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := runAll(t, openApp(t, string(text)), "report", map[string]any{"customer": "ada"}, map[string]any{"customer": "' OR '1'='1"}, map[string]any{"customer": "bo"})
	assertLines(t, got, `007 | 2024-02-29 | 41.5 | ["1 x desk lamp","3 x bulb"]`, `008 | 2024-03-04 | 9.9 | ["2 x notebook"]`,
		`009 | 2024-03-05 |  | ["2 x desk lamp","5 x notebook","10 x pen"]`)
}

// groupingDocument returns a flow that explodes lists and collects them again.
func groupingDocument(by, size string) string {
	return `
id: data
flows:
  - id: main
    variables:
      - {id: key, type: text}
      - {id: words, type: "list[text]"}
      - {id: word, type: text}
      - {id: loud, type: text}
      - {id: together, type: "list[text]"}
    inputs: [key, words]
    outputs: [key, together]
    steps:
      - {type: Explode, id: apart, inputs: [words], outputs: [word]}
      - {type: PromptTemplate, id: shout, template: "{word}!", inputs: [word], outputs: [loud]}
      - {type: Collect, id: gather, by: ` + by + size + `, inputs: [loud], outputs: [together]}
`
}

// TestCollect_GroupBy: rows of one parent form one list; equal parents are separate
// groups if the exploded list is part of the key.
func TestCollect_GroupBy(t *testing.T) {
	rows := []map[string]any{
		{"key": "a", "words": []any{"x", "y", "z"}}, {"key": "b", "words": []any{}}, {"key": "c", "words": []any{"x"}},
		{"key": "c", "words": []any{"x"}}, {"key": "a", "words": []any{"w"}},
	}
	assertLines(t, runAll(t, openApp(t, groupingDocument("[key]", "")), "main", rows...),
		`a | ["x!","y!","z!"]`, `c | ["x!","x!"]`, `a | ["w!"]`)
	assertLines(t, runAll(t, openApp(t, groupingDocument("[words]", "")), "main", rows...),
		`a | ["x!","y!","z!"]`, `c | ["x!"]`, `c | ["x!"]`, `a | ["w!"]`)
	assertLines(t, runAll(t, openApp(t, groupingDocument("[key, words]", ", batch_config: {batch_size: 2}")), "main", rows...),
		`a | ["x!","y!"]`, `a | ["z!"]`, `c | ["x!"]`, `c | ["x!"]`, `a | ["w!"]`)
	bad := append(rows[:1:1], map[string]any{"key": "bad"}, map[string]any{"key": "b", "words": []any{"k"}})
	assertLines(t, runAll(t, openApp(t, groupingDocument("[key]", "")), "main", bad...),
		`a | ["x!","y!","z!"]`, "row 2: input words (list[text]) is missing", `b | ["k!"]`)
}

// TestSQLSource_RowErrors: an error of the database fails its row, names the step and
// does not contain the password.
func TestSQLSource_RowErrors(t *testing.T) {
	dir := t.TempDir()
	document := func(connection, query string) string {
		return `
id: data
flows:
  - id: main
    variables: [{id: n, type: int}, {id: twice, type: int}]
    inputs: [n]
    outputs: [twice]
    steps:
      - {type: SQLSource, id: ask, connection: "` + connection + `", query: "` + query + `", inputs: [n], outputs: [twice]}
`
	}
	rows := []map[string]any{{"n": 4}, {"n": 21}}
	assertLines(t, runAll(t, openApp(t, document("sqlite://", "SELECT :n * 2 AS twice WHERE :n > 4")), "main", rows...), "42")
	assertLines(t, runAll(t, openApp(t, document("sqlite://", "SELECT :n * 2 AS three")), "main", rows...),
		`row 1: step ask: the query returns no column "twice"; columns are three`, `row 2: step ask: the query returns no column "twice"; columns are three`)
	missing := "sqlite:///" + filepath.Join(dir, "no.db")
	assertLines(t, runAll(t, openApp(t, document(missing, "SELECT 1 AS twice")), "main", rows[0]), "row 1: step ask: "+missing+": no such file")
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the database was created: %v", left)
	}
}

// TestCollect_ReusedRowsDoNotLeak: collected rows are reused for later rows, and no
// value of a row may appear in another one, also in concurrent runs.
func TestCollect_ReusedRowsDoNotLeak(t *testing.T) {
	document := strings.Replace(groupingDocument("[words]", ""), "flows:\n", `models:
  - {type: Model, id: echo, provider: mock, inference_params: {}}
flows:
  - id: inner
    variables: [{id: part, type: text}, {id: twice, type: text}]
    inputs: [part]
    outputs: [twice]
    steps: [{type: Transform, id: duplicate, set: {twice: part + part}}]
`, 1)
	document = strings.Replace(document, "      - {type: Collect", `      - {type: InvokeFlow, id: call, flow: inner, input_bindings: {part: loud}, output_bindings: {twice: loud}}
      - {type: Collect`, 1)
	app := openApp(t, document)
	var rows []map[string]any
	var expected []string
	for i := range 400 {
		n := i * 7 % 40 // allocation blocks of several sizes, and more than one block
		words, loud := make([]any, n), make([]string, n)
		for j := range n {
			words[j] = fmt.Sprintf("%d.%d", i, j)
			loud[j] = fmt.Sprintf("%q", fmt.Sprintf("%d.%d!%d.%d!", i, j, i, j))
		}
		rows = append(rows, map[string]any{"key": fmt.Sprint("k", i), "words": words})
		if n > 0 {
			expected = append(expected, fmt.Sprintf("k%d | [%s]", i, strings.Join(loud, ",")))
		}
	}
	var runs sync.WaitGroup
	for range 3 {
		runs.Go(func() { assertLines(t, runAll(t, app, "main", rows...), expected...) })
	}
	runs.Wait()
}
