package runtime_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// errorCase is one type of step in a flow with the input x.
type errorCase struct {
	step string // its keys except type, id, timeout and on_error
	name string // the name of x; x if empty
	x    string // the type of x; text if empty
	with string // another input, a text that is the same in all rows: "q: why"
	vars string // further variables: "y: text, z: int"
	head string // YAML before the flows
	flow string // YAML of further flows
	rows [3]any // x of three rows; the second one is to fail
	bad  any    // x that the step itself rejects; nil if there is none
	huge any    // x that is very large
	fine bool   // the step accepts the huge value
	adds int    // the number of results in addition to one for each row
}

const (
	mockHead  = "models:\n  - {type: Model, id: writer, provider: mock}\n"
	memoHead  = "memories:\n  - {id: memo}\n"
	pipeHead  = "types:\n  - {id: Thing, properties: {y: text}}\n"
	innerFlow = "  - id: inner\n    variables: [{id: x, type: text}, {id: y, type: text}, {id: seen, type: boolean}]\n    inputs: [x]\n    outputs: [y]\n" +
		"    steps: [{type: Transform, id: up, set: {y: 'x + \"!\"'}}]\n"
)

// errorCases has a row for every step type that this version runs.
func errorCases(t *testing.T) map[string]errorCase {
	t.Helper()
	dir := t.TempDir()
	file, texts := filepath.Join(dir, "in.csv"), t.TempDir()
	testkit.Must(t, os.WriteFile(file, []byte("y\nread\n"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(texts, "a.txt"), []byte("read"), 0o600))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // an idle connection would wait on the real clock
		if r.URL.Path != "/rerank" {
			_, _ = fmt.Fprint(w, `{"y": "found"}`)
			return
		}
		if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("reject")) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprint(w, `{"results": [{"index": 0, "relevanceScore": 0.5}]}`)
	}))
	t.Cleanup(server.Close)
	for name, v := range map[string]string{"AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME": server.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"} {
		t.Setenv(name, v)
	}
	toolHead := "tools:\n  - {type: APITool, id: look, name: look, description: looks, endpoint: \"" + server.URL +
		"\", method: POST, allow_private: true, inputs: [{id: x, type: text}], outputs: [{id: y, type: text}]}\n"
	text, list := strings.Repeat("x", 50<<20), slices.Repeat([]any{"x"}, 1_000_000)
	prompt := strings.Repeat("word ", 1<<20) // models count its tokens
	words := [3]any{"a", "b", "c"}
	chunk := func(id, text string) any {
		return map[string]any{"content": text, "chunk_id": id, "document_id": "d"}
	}
	chunks := [3]any{chunk("c1", "a"), chunk("c2", "b"), chunk("c3", "c")}
	vectorHead := "models:\n  - {type: EmbeddingModel, id: vectors, provider: mock, dimensions: 4}\n"
	notesHead := vectorHead + "indexes:\n  - {type: VectorIndex, id: notes, name: notes, module: embedded, embedding_model: vectors, args: {path: \"" + filepath.Join(dir, "notes.db") + "\"}}\n"
	booksHead := "indexes:\n  - {type: DocumentIndex, id: books, name: books, endpoint: embedded, args: {path: \"" + filepath.Join(dir, "books.db") + "\"}}\n"
	document := func(text string) any {
		return map[string]any{"content": text, "file_id": "f", "file_name": "f.md", "type": "text", "metadata": map[string]any{}}
	}
	image := document("")
	image.(map[string]any)["content"] = []byte("\x89PNG\r\n\x1a\n")
	documents := [3]any{document("a"), document("b"), document("c")}
	found := func(text string) any {
		return []any{map[string]any{"content": chunk("c1", text), "doc_id": "d", "score": 1.0}}
	}
	results := [3]any{found("a"), found("b"), found("c")}
	thing := func(y any) any { return map[string]any{"y": y} }
	return map[string]errorCase{
		"PromptTemplate": {step: `template: "<{x}>", inputs: [x], outputs: [y]`, vars: "y: text", rows: words, huge: text, fine: true},
		"Decoder": {step: `inputs: [x], outputs: [y]`, vars: "y: text", rows: [3]any{`{"y": "1"}`, `{"y": "2"}`, `{"y": "3"}`}, bad: "not JSON",
			huge: `{"y": "` + text + `"}`, fine: true},
		"FieldExtractor": {step: `json_path: "$.y", inputs: [x], outputs: [y]`, x: "Thing", head: pipeHead, vars: "y: int",
			rows: [3]any{thing("1"), thing("2"), thing("3")}, huge: thing(text), fine: true},
		"Explode":    {step: `inputs: [x], outputs: [y]`, x: "list[text]", vars: "y: text", rows: [3]any{[]any{"a"}, []any{"b"}, []any{"c"}}, huge: list, fine: true, adds: len(list) - 1},
		"Collect":    {step: `batch_config: {batch_size: 1}, inputs: [x], outputs: [y]`, vars: `y: "list[text]"`, rows: words, huge: text, fine: true},
		"Construct":  {step: `field_bindings: {y: x}, outputs: [z]`, head: pipeHead, vars: "z: Thing", rows: words, huge: text, fine: true},
		"Echo":       {step: `inputs: [x], outputs: [x]`, rows: words, huge: text, fine: true},
		"Aggregate":  {step: `outputs: [n]`, vars: "n: AggregateStats", rows: words, huge: text, fine: true, adds: 1},
		"FileSource": {step: `path: x, base: "` + filepath.Dir(file) + `", outputs: [y]`, vars: "y: text", rows: [3]any{file, file, file}, bad: file + ".none", huge: text},
		"FileWriter": {step: `path: {uri: "` + filepath.Join(dir, "out.jsonl") + `"}, batch_config: {batch_size: 1}, inputs: [x], outputs: [y]`, vars: "y: text",
			rows: words, huge: text, fine: true},
		"SQLSource": {step: `connection: "sqlite://", query: "select abs(:x) as y", inputs: [x], outputs: [y]`, x: "int", vars: "y: text",
			rows: [3]any{1, 2, 3}, bad: -9223372036854775808, huge: 9223372036854775807, fine: true},
		"LLMInference": {step: `model: writer, inputs: [x], outputs: [y]`, head: mockHead, vars: "y: text", rows: words, huge: prompt, fine: true},
		"Agent":        {step: `model: writer, inputs: [x], outputs: [y]`, head: mockHead, vars: "y: text", rows: words, huge: prompt, fine: true},
		"InvokeTool":   {step: `tool: look, input_bindings: {x: x}, output_bindings: {y: y}`, head: toolHead, vars: "y: text", rows: words, huge: text, fine: true},
		"InvokeFlow":   {step: `flow: inner, input_bindings: {x: x}, output_bindings: {y: y}`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"InvokeEmbedding": {step: `model: vectors, inputs: [x], outputs: [y]`, head: "models:\n  - {type: EmbeddingModel, id: vectors, provider: mock, dimensions: 4}\n",
			vars: "y: Embedding", rows: words, bad: " ", huge: prompt, fine: true},
		"DocumentSource": {step: `reader_module: directory, inputs: [input_dir], outputs: [y]`, name: "input_dir", vars: "y: RAGDocument",
			rows: [3]any{texts, texts, texts}, bad: texts + "/none", huge: text},
		"DocToTextConverter": {step: `inputs: [x], outputs: [x]`, x: "RAGDocument", rows: documents, bad: image, huge: document(text), fine: true},
		"DocumentSplitter":   {step: `chunk_size: 2000000, inputs: [x], outputs: [y]`, x: "RAGDocument", vars: "y: RAGChunk", rows: documents, huge: document(prompt), fine: true},
		"Reranker": {step: `method: mmr, embedding_model: vectors, inputs: [q, x], outputs: [x]`, with: "q: why", x: "list[RAGSearchResult]", head: vectorHead, rows: results, bad: found(" "),
			huge: found(prompt), fine: true},
		"BedrockReranker": {step: `model_id: cohere.rerank-v3-5, inputs: [q, x], outputs: [x]`, x: "list[SearchResult]", with: "q: why", rows: results, bad: found("reject"),
			huge: found(prompt), fine: true},
		"DocumentEmbedder": {step: `model: vectors, batch_config: {batch_size: 1}, inputs: [x], outputs: [x]`, x: "RAGChunk", head: vectorHead, rows: chunks, bad: chunk("c2", " "), huge: chunk("c2", prompt), fine: true},
		"IndexUpsert":      {step: `index: notes, batch_config: {batch_size: 1}, inputs: [x]`, x: "RAGChunk", head: notesHead, rows: chunks, bad: chunk("c2", ""), huge: chunk("c2", prompt), fine: true},
		"VectorSearch":     {step: `index: notes, inputs: [x], outputs: [y]`, head: notesHead, vars: `y: "list[RAGSearchResult]"`, rows: words, bad: " ", huge: prompt, fine: true},
		"DocumentSearch":   {step: `index: books, inputs: [x], outputs: [y]`, head: booksHead, vars: `y: "list[SearchResult]"`, rows: words, huge: prompt, fine: true},
		"Switch":           {step: `inputs: [x], outputs: [y], cases: [{when: 'x != ""', flow: inner}]`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"Loop":             {step: `flow: once, inputs: [x], outputs: [x], max_iterations: 1`, flow: strings.NewReplacer("inner", "once", "outputs: [y]", "outputs: [x]", "y: 'x", "x: 'x").Replace(innerFlow), rows: words, huge: text},
		"Parallel":         {step: `flows: [inner], inputs: [x], outputs: [y]`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"Transform":        {step: `set: {y: 'x + "!"'}`, vars: "y: text", rows: words, huge: text},
		"MemoryVariables":  {step: `memory: memo, inputs: [x], outputs: [x]`, head: memoHead, rows: words, huge: text},
	}
}

// document returns a document whose flow is the one step, with further keys.
func (c errorCase) document(kind, keys string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id: errors\n%sflows:\n%s  - id: main\n    inputs: [%s]\n    variables:\n      - {id: %[3]s, type: %q}\n", c.head, c.flow, c.input(), cmp.Or(c.x, "text"))
	if name, _, ok := strings.Cut(c.with, ": "); ok {
		text := strings.Replace(b.String(), "    inputs: ["+c.input(), "    inputs: ["+c.input()+", "+name, 1)
		b.Reset()
		fmt.Fprintf(&b, "%s      - {id: %s, type: text}\n", text, name)
	}
	for v := range strings.SplitSeq(c.vars, ", ") {
		if v != "" {
			fmt.Fprintf(&b, "      - {id: %s}\n", strings.Replace(v, ": ", ", type: ", 1))
		}
	}
	fmt.Fprintf(&b, "    steps:\n      - {type: %s, id: work, %s%s}\n", kind, keys, c.step)
	return b.String()
}

// input is the name of x.
func (c errorCase) input() string { return cmp.Or(c.name, "x") }

func openCase(t *testing.T, document string) *runtime.App {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", document)
	parts := runtime.CoreParts()
	parts.AWS = awsauthtest.Builder
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{Parts: parts})
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	t.Cleanup(func() {
		if err := app.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return app
}

// outcomes runs three rows and returns the outcome of each: "ok" or the error.
func (c errorCase) outcomes(ctx context.Context, app *runtime.App, x [3]any, fail runtime.FailFunc) ([]string, error) {
	var rows []runtime.Input
	for i, v := range x {
		values := map[string]any{c.input(): v}
		if name, text, ok := strings.Cut(c.with, ": "); ok {
			values[name] = text
		}
		rows = append(rows, runtime.Input{Values: values, Session: fmt.Sprint("s", i)})
	}
	var out []string
	err := runtime.RunWithFailures(ctx, app, "work", fail, rows, func(r *steps.Row) {
		if r.Err == nil {
			out = append(out, "ok")
			return
		}
		out = append(out, r.Err.Error())
	})
	return out, err
}

func nothing(context.Context, *steps.Row) error { return nil }

// second calls fail for the second row only.
func second(fail runtime.FailFunc) runtime.FailFunc {
	return func(ctx context.Context, row *steps.Row) error {
		if row.Number != 2 {
			return nil
		}
		return fail(ctx, row)
	}
}

func hang(ctx context.Context, _ *steps.Row) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestStepErrors: if a step returns an error, panics or hangs for one row, that row
// fails and the run continues. Every step type has a case. The package checks for
// goroutines that are left.
func TestStepErrors(t *testing.T) {
	cases := errorCases(t)
	for _, u := range spec.Unions() {
		if u.Name != "step" {
			continue
		}
		for _, c := range u.Cases {
			if _, ok := cases[c.Tag]; !ok && !slices.Contains(steps.Unsupported(), c.Tag) {
				t.Errorf("step type %s has no case in this test", c.Tag)
			}
		}
	}
	for kind, c := range cases {
		t.Run(kind, func(t *testing.T) { c.run(t, kind) })
	}
}

func (c errorCase) run(t *testing.T, kind string) {
	plain := openCase(t, c.document(kind, ""))
	check := func(t *testing.T, what string, app *runtime.App, x [3]any, fail runtime.FailFunc, want string) {
		t.Helper()
		got, err := c.outcomes(t.Context(), app, x, fail)
		failed := 0
		for _, s := range got {
			if s != "ok" {
				failed++
			}
		}
		expected := c
		if what != "huge" {
			expected.adds = min(c.adds, 1)
			if kind == "Explode" {
				expected.adds = 0
			}
		}
		switch {
		case err != nil:
			t.Errorf("%s: the run ended: %v", what, err)
		case want == "" && (failed > 0 || len(got) != 3+expected.adds):
			t.Errorf("%s: %d rows, of which %d failed: %.300q", what, len(got), failed, got[:min(4, len(got))])
		case want != "" && (failed != 1 || len(got) != 3+min(expected.adds, 1) || !strings.HasPrefix(got[1], "step work") || !strings.Contains(got[1], want)):
			t.Errorf("%s: got %.400q, want the second to fail: … %s", what, got, want)
		}
	}
	check(t, "nothing", plain, c.rows, nothing, "")
	check(t, "error", plain, c.rows, second(func(context.Context, *steps.Row) error { return errors.New("broken") }), "broken")
	check(t, "panic", plain, c.rows, second(func(context.Context, *steps.Row) error { panic("a bug") }), "internal error: a bug")
	synctest.Test(t, func(t *testing.T) { // a fake clock, which does not advance while code runs
		check(t, "hang", openCase(t, c.document(kind, "timeout: 100ms, ")), c.rows, second(hang), "timed out after 100ms")
	})
	if c.bad != nil {
		check(t, "bad", plain, [3]any{c.rows[0], c.bad, c.rows[2]}, nothing, ": ")
	}
	if !testing.Short() {
		want := ": "
		if c.fine {
			want = ""
		}
		check(t, "huge", plain, [3]any{c.rows[0], c.huge, c.rows[2]}, nothing, want)
	}
	c.cancel(t, plain)
}

// cancel ends a run whose second row hangs.
func (c errorCase) cancel(t *testing.T, app *runtime.App) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, err := c.outcomes(ctx, app, c.rows, second(func(ctx context.Context, row *steps.Row) error {
		cancel()
		return hang(ctx, row)
	}))
	if !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Errorf("canceled: %v, rows %q", err, got)
	}
}
