package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// faultCase is one type of step in a flow of its own, which takes x.
type faultCase struct {
	step string // its keys beside type, id, timeout and on_error
	x    string // the type of x; text where it is empty
	vars string // further variables: "y: text, z: int"
	head string // YAML before the flows
	flow string // YAML of further flows
	rows [3]any // x of three rows; the second is the one that something happens to
	bad  any    // x that the step itself cannot work on; nil for none: whatever x is, the step works
	huge any    // x that is very large
	fine bool   // the huge value is no fault for the step
	adds int    // rows that come out beside one for each row
}

const (
	mockHead  = "models:\n  - {type: Model, id: writer, provider: mock}\n"
	memoHead  = "memories:\n  - {id: memo}\n"
	pipeHead  = "types:\n  - {id: Thing, properties: {y: text}}\n"
	innerFlow = "  - id: inner\n    variables: [{id: x, type: text}, {id: y, type: text}, {id: seen, type: boolean}]\n    inputs: [x]\n    outputs: [y]\n" +
		"    steps: [{type: Transform, id: up, set: {y: 'x + \"!\"'}}]\n"
)

// faultCases has a row for every type of step that runs.
func faultCases(t *testing.T) map[string]faultCase {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "in.csv")
	if err := os.WriteFile(file, []byte("y\nread\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // a connection that is kept would wait on the real clock
		_, _ = fmt.Fprint(w, `{"y": "found"}`)
	}))
	t.Cleanup(server.Close)
	toolHead := "tools:\n  - {type: APITool, id: look, name: look, description: looks, endpoint: \"" + server.URL +
		"\", method: POST, allow_private: true, inputs: [{id: x, type: text}], outputs: [{id: y, type: text}]}\n"
	text, list := strings.Repeat("x", 50<<20), slices.Repeat([]any{"x"}, 1_000_000)
	spoken := strings.Repeat("word ", 1<<20) // models count its tokens
	words := [3]any{"a", "b", "c"}
	thing := func(y any) any { return map[string]any{"y": y} }
	return map[string]faultCase{
		"PromptTemplate": {step: `template: "<{x}>", inputs: [x], outputs: [y]`, vars: "y: text", rows: words, huge: text, fine: true},
		"Decoder": {step: `inputs: [x], outputs: [y]`, vars: "y: text", rows: [3]any{`{"y": "1"}`, `{"y": "2"}`, `{"y": "3"}`}, bad: "no JSON",
			huge: `{"y": "` + text + `"}`, fine: true},
		"FieldExtractor": {step: `json_path: "$.y", inputs: [x], outputs: [y]`, x: "Thing", head: pipeHead, vars: "y: int",
			rows: [3]any{thing("1"), thing("2"), thing("3")}, huge: thing(text), fine: true},
		"Explode":    {step: `inputs: [x], outputs: [y]`, x: "list[text]", vars: "y: text", rows: [3]any{[]any{"a"}, []any{"b"}, []any{"c"}}, huge: list, fine: true, adds: len(list) - 1},
		"Collect":    {step: `batch_config: {batch_size: 1}, inputs: [x], outputs: [y]`, vars: `y: "list[text]"`, rows: words, huge: text, fine: true},
		"Construct":  {step: `field_bindings: {y: x}, outputs: [z]`, head: pipeHead, vars: "z: Thing", rows: words, huge: text, fine: true},
		"Echo":       {step: `inputs: [x], outputs: [x]`, rows: words, huge: text, fine: true},
		"Aggregate":  {step: `outputs: [n]`, vars: "n: AggregateStats", rows: words, huge: text, fine: true, adds: 1},
		"FileSource": {step: `path: x, outputs: [y]`, vars: "y: text", rows: [3]any{file, file, file}, bad: file + ".none", huge: text},
		"FileWriter": {step: `path: {uri: "` + filepath.Join(dir, "out.jsonl") + `"}, batch_config: {batch_size: 1}, inputs: [x], outputs: [y]`, vars: "y: text",
			rows: words, huge: text, fine: true},
		"SQLSource": {step: `connection: "sqlite://", query: "select abs(:x) as y", inputs: [x], outputs: [y]`, x: "int", vars: "y: text",
			rows: [3]any{1, 2, 3}, bad: -9223372036854775808, huge: 9223372036854775807, fine: true},
		"LLMInference": {step: `model: writer, inputs: [x], outputs: [y]`, head: mockHead, vars: "y: text", rows: words, huge: spoken, fine: true},
		"Agent":        {step: `model: writer, inputs: [x], outputs: [y]`, head: mockHead, vars: "y: text", rows: words, huge: spoken, fine: true},
		"InvokeTool":   {step: `tool: look, input_bindings: {x: x}, output_bindings: {y: y}`, head: toolHead, vars: "y: text", rows: words, huge: text, fine: true},
		"InvokeFlow":   {step: `flow: inner, input_bindings: {x: x}, output_bindings: {y: y}`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"InvokeEmbedding": {step: `model: vectors, inputs: [x], outputs: [y]`, head: "models:\n  - {type: EmbeddingModel, id: vectors, provider: mock, dimensions: 4}\n",
			vars: "y: Embedding", rows: words, bad: " ", huge: spoken, fine: true},
		"Switch":          {step: `inputs: [x], outputs: [y], cases: [{when: 'x != ""', flow: inner}]`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"Loop":            {step: `flow: once, inputs: [x], outputs: [x], max_iterations: 1`, flow: strings.NewReplacer("inner", "once", "outputs: [y]", "outputs: [x]", "y: 'x", "x: 'x").Replace(innerFlow), rows: words, huge: text},
		"Parallel":        {step: `flows: [inner], inputs: [x], outputs: [y]`, flow: innerFlow, vars: "y: text", rows: words, huge: text},
		"Transform":       {step: `set: {y: 'x + "!"'}`, vars: "y: text", rows: words, huge: text},
		"MemoryVariables": {step: `memory: memo, inputs: [x], outputs: [x]`, head: memoHead, rows: words, huge: text},
	}
}

// document is the case as a flow of the one step, with further keys.
func (c faultCase) document(kind, keys string) string {
	x := c.x
	if x == "" {
		x = "text"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: faults\n%sflows:\n%s  - id: main\n    inputs: [x]\n    variables:\n      - {id: x, type: %q}\n", c.head, c.flow, x)
	for v := range strings.SplitSeq(c.vars, ", ") {
		if v != "" {
			fmt.Fprintf(&b, "      - {id: %s}\n", strings.Replace(v, ": ", ", type: ", 1))
		}
	}
	fmt.Fprintf(&b, "    steps:\n      - {type: %s, id: work, %s%s}\n", kind, keys, c.step)
	return b.String()
}

func openFault(t *testing.T, document string) *runtime.App {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
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

// fates runs three rows and tells of each row what became of it: "ok" or the error.
func fates(ctx context.Context, app *runtime.App, x [3]any, fault runtime.Fault) ([]string, error) {
	var rows []runtime.Input
	for i, v := range x {
		rows = append(rows, runtime.Input{Values: map[string]any{"x": v}, Session: fmt.Sprint("s", i)})
	}
	var out []string
	err := runtime.Sabotage(ctx, app, "work", fault, rows, func(r *steps.Row) {
		if r.Err == nil {
			out = append(out, "ok")
			return
		}
		out = append(out, r.Err.Error())
	})
	return out, err
}

func nothing(context.Context, *steps.Row) error { return nil }

// second makes something happen to the second row alone.
func second(fault runtime.Fault) runtime.Fault {
	return func(ctx context.Context, row *steps.Row) error {
		if row.Number != 2 {
			return nil
		}
		return fault(ctx, row)
	}
}

func hang(ctx context.Context, _ *steps.Row) error {
	<-ctx.Done()
	return ctx.Err()
}

// Whatever happens to one row in a step, one row fails and the run goes on.
// Every type of step has a case; what it leaves running, the package's check
// for goroutines finds.
func TestFaults(t *testing.T) {
	cases := faultCases(t)
	for _, u := range spec.Unions() {
		if u.Name != "step" {
			continue
		}
		for _, c := range u.Cases {
			if _, ok := cases[c.Tag]; !ok && !slices.Contains(steps.Unsupported(), c.Tag) {
				t.Errorf("the step type %s has no case here: say what happens to it when things go wrong", c.Tag)
			}
		}
	}
	for kind, c := range cases {
		t.Run(kind, func(t *testing.T) { c.run(t, kind) })
	}
}

func (c faultCase) run(t *testing.T, kind string) {
	plain := openFault(t, c.document(kind, ""))
	check := func(t *testing.T, what string, app *runtime.App, x [3]any, fault runtime.Fault, want string) {
		t.Helper()
		got, err := fates(t.Context(), app, x, fault)
		failed := 0
		for _, s := range got {
			if s != "ok" {
				failed++
			}
		}
		bare := c
		if what != "huge" {
			bare.adds = min(c.adds, 1)
			if kind == "Explode" {
				bare.adds = 0
			}
		}
		switch {
		case err != nil:
			t.Errorf("%s: the run ended: %v", what, err)
		case want == "" && (failed > 0 || len(got) != 3+bare.adds):
			t.Errorf("%s: %d rows, of which %d failed: %.300q", what, len(got), failed, got[:min(4, len(got))])
		case want != "" && (failed != 1 || len(got) != 3+min(bare.adds, 1) || !strings.HasPrefix(got[1], "step work") || !strings.Contains(got[1], want)):
			t.Errorf("%s: got %.400q, want the second to fail: … %s", what, got, want)
		}
	}
	check(t, "nothing", plain, c.rows, nothing, "")
	check(t, "error", plain, c.rows, second(func(context.Context, *steps.Row) error { return errors.New("it broke") }), "it broke")
	check(t, "panic", plain, c.rows, second(func(context.Context, *steps.Row) error { panic("a defect") }), "internal error: a defect")
	synctest.Test(t, func(t *testing.T) { // the clock of the test stands still while anybody works
		check(t, "hang", openFault(t, c.document(kind, "timeout: 100ms, ")), c.rows, second(hang), "timed out after 100ms")
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
func (c faultCase) cancel(t *testing.T, app *runtime.App) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, err := fates(ctx, app, c.rows, second(func(ctx context.Context, row *steps.Row) error {
		cancel()
		return hang(ctx, row)
	}))
	if !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Errorf("cancelled: %v, rows %q", err, got)
	}
}
