package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestOrdersExample(t *testing.T) {
	text, err := os.ReadFile("examples/orders/app.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(t, open(t, string(text)), "report", map[string]any{"customer": "ada"}, map[string]any{"customer": "' OR '1'='1"}, map[string]any{"customer": "bo"})
	want(t, got, `007 | 2024-02-29 | 41.5 | ["1 x desk lamp","3 x bulb"]`, `008 | 2024-03-04 | 9.9 | ["2 x notebook"]`,
		`009 | 2024-03-05 |  | ["2 x desk lamp","5 x notebook","10 x pen"]`)
}

// grouping is a flow that takes lists apart and puts them together again.
func grouping(by, size string) string {
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

// Rows of one parent make one list; parents that look alike stay apart where
// the list that was taken apart tells them apart.
func TestCollectBy(t *testing.T) {
	rows := []map[string]any{
		{"key": "a", "words": []any{"x", "y", "z"}}, {"key": "b", "words": []any{}}, {"key": "c", "words": []any{"x"}},
		{"key": "c", "words": []any{"x"}}, {"key": "a", "words": []any{"w"}},
	}
	want(t, outcomes(t, open(t, grouping("[key]", "")), "main", rows...),
		`a | ["x!","y!","z!"]`, `c | ["x!","x!"]`, `a | ["w!"]`)
	want(t, outcomes(t, open(t, grouping("[words]", "")), "main", rows...),
		`a | ["x!","y!","z!"]`, `c | ["x!"]`, `c | ["x!"]`, `a | ["w!"]`)
	want(t, outcomes(t, open(t, grouping("[key, words]", ", batch_config: {batch_size: 2}")), "main", rows...),
		`a | ["x!","y!"]`, `a | ["z!"]`, `c | ["x!"]`, `c | ["x!"]`, `a | ["w!"]`)
	bad := append(rows[:1:1], map[string]any{"key": "bad"}, map[string]any{"key": "b", "words": []any{"k"}})
	want(t, outcomes(t, open(t, grouping("[key]", "")), "main", bad...),
		`a | ["x!","y!","z!"]`, "row 2: input words (list[text]) is missing", `b | ["k!"]`)
}

// What a database refuses fails its row, in the step's name and without the password.
func TestSQLSourceRowErrors(t *testing.T) {
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
	want(t, outcomes(t, open(t, document("sqlite://", "SELECT :n * 2 AS twice WHERE :n > 4")), "main", rows...), "42")
	want(t, outcomes(t, open(t, document("sqlite://", "SELECT :n * 2 AS three")), "main", rows...),
		`row 1: step ask: the query gives no column "twice"; columns are three`, `row 2: step ask: the query gives no column "twice"; columns are three`)
	missing := "sqlite:///" + filepath.Join(dir, "no.db")
	want(t, outcomes(t, open(t, document(missing, "SELECT 1 AS twice")), "main", rows[0]), "row 1: step ask: "+missing+": no such file")
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the database was made: %v", left)
	}
	unreachable := "postgresql://ada:s3cret@127.0.0.1:1/shop"
	got := strings.Join(outcomes(t, open(t, document(unreachable, "SELECT 1 AS twice")), "main", rows[0]), "")
	if !strings.HasPrefix(got, "row 1: step ask: postgresql://ada@127.0.0.1:1/shop: cannot connect: ") || strings.Contains(got, "s3cret") {
		t.Error(got)
	}
}

// Rows that were gathered give their memory to later rows: nothing of a row may
// show up in another one, also with workers and several runs at once.
func TestGatheredRowsStayApart(t *testing.T) {
	document := strings.Replace(grouping("[words]", ""), "flows:\n", `models:
  - {type: Model, id: echo, provider: mock, inference_params: {}}
flows:
  - id: inner
    variables: [{id: said, type: text}, {id: twice, type: text}]
    inputs: [said]
    outputs: [twice]
    steps: [{type: Transform, id: double, set: {twice: said + said}}]
`, 1)
	document = strings.Replace(document, "      - {type: Collect", `      - {type: InvokeFlow, id: call, flow: inner, input_bindings: {said: loud}, output_bindings: {twice: loud}}
      - {type: Collect`, 1)
	app := open(t, document)
	var rows []map[string]any
	var expected []string
	for i := range 400 {
		n := i * 7 % 40 // blocks of several sizes, and more than one block
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
		runs.Go(func() { want(t, outcomes(t, app, "main", rows...), expected...) })
	}
	runs.Wait()
}
