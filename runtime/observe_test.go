package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// tree is an Observer that notes the operations as a tree.
type tree struct {
	mu    sync.Mutex
	roots []*treeSpan
}

type treeSpan struct {
	tree   *tree
	op     steps.Operation
	result *steps.OperationResult
	inner  []*treeSpan
}

type treeKey struct{}

func (t *tree) Start(ctx context.Context, op *steps.Operation) steps.Span {
	if op.Kind == steps.OperationStore {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &treeSpan{tree: t, op: *op}
	if outer, ok := ctx.Value(treeKey{}).(*treeSpan); ok {
		outer.inner = append(outer.inner, s)
	} else {
		t.roots = append(t.roots, s)
	}
	return s
}

func (s *treeSpan) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, treeKey{}, s)
}

func (s *treeSpan) End(r *steps.OperationResult) {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	s.result = r
}

// lines are the operations, indented, with counts and errors.
func (t *tree) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	var add func(spans []*treeSpan, indent string)
	add = func(spans []*treeSpan, indent string) {
		for _, s := range spans {
			line := fmt.Sprintf("%s%s %s", indent, s.op.Kind, s.op.ID)
			switch {
			case s.result == nil:
				line += " not ended"
			case s.op.Kind == steps.OperationFlow, s.op.Kind == steps.OperationStep:
				line += fmt.Sprintf(" %d %d %d", s.result.Read, s.result.Done, s.result.Failed)
			case s.result.Turn != nil:
				line += fmt.Sprintf(" +%d=%d", s.result.Turn.Added, s.result.Turn.Messages)
			}
			if s.result != nil && s.result.Err != nil {
				line += ": " + s.result.Err.Error()
			}
			all = append(all, line)
			add(s.inner, indent+"  ")
		}
	}
	add(t.roots, "")
	return all
}

const observed = `
id: observed
models:
  - {type: Model, id: broken, provider: mock, rules: [{error: "out of order", status: 503}], retry: {max_attempts: 2, initial_delay: 1ms, max_delay: 1ms}, fallbacks: [spare]}
  - {type: Model, id: spare, provider: mock, rules: [{after: tool, text: "done"}, {tool_calls: [{name: upper, arguments: {text: sun}}]}]}
memories: [{id: notes}]
tools:
  - {type: FlowTool, id: upper_tool, name: upper, description: Upper, flow: inner}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: Agent, id: respond, model: broken, memory: notes, tools: [upper_tool], inputs: [question], outputs: [answer]}
  - id: inner
    variables: [{id: text, type: text}, {id: copy, type: text}]
    inputs: [text]
    outputs: [copy]
    steps:
      - {type: PromptTemplate, id: copy_text, template: "{text}!", inputs: [text], outputs: [copy]}
`

// runObserved runs a flow on rows with one value of an input, and returns the
// operations.
func runObserved(t *testing.T, document, flow, input string, values ...any) *tree {
	t.Helper()
	app, seen := openCase(t, document), &tree{}
	var rows []runtime.Input
	for _, v := range values {
		rows = append(rows, runtime.Input{Session: "s", Values: map[string]any{input: v}})
	}
	for _, err := range app.Run(t.Context(), flow, slices.Values(rows), runtime.WithObserver(seen)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

func expectLines(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n"); text != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", text, strings.TrimSpace(want))
	}
}

func TestObserver_NestedOperations(t *testing.T) {
	seen := runObserved(t, observed, "talk", "question", "the weather?")
	expectLines(t, seen.lines(), `
flow talk 1 1 0
  step respond 1 1 0
    row respond
      memory notes +4=4
        model broken: model broken: HTTP 503: [mock] out of order
        model broken: model broken: HTTP 503: [mock] out of order
        model spare
        tool upper_tool
          flow inner 1 1 0
            step copy_text 1 1 0
              row copy_text
        model broken: model broken: HTTP 503: [mock] out of order
        model broken: model broken: HTTP 503: [mock] out of order
        model spare
`)
}

const observedRows = `
id: rows
flows:
  - id: list
    variables: [{id: x, type: text}, {id: n, type: int}, {id: all, type: "list[int]"}]
    inputs: [x]
    outputs: [all]
    steps:
      - {type: Decoder, id: read, format: json, inputs: [x], outputs: [n], cache_config: {directory: %q}}
      - {type: Collect, id: group, batch_config: {batch_size: 2}, inputs: [n], outputs: [all]}
`

func TestObserver_RowsBatchesAndCache(t *testing.T) {
	document := fmt.Sprintf(observedRows, t.TempDir())
	for run, want := range []string{`
flow list 4 3 1
  step read 4 3 1
    row read
    row read
    row read: n: expected int, got "x"
    row read
  step group 4 2 1
    batch group
    batch group
`, `
flow list 4 3 1
  step read 4 3 1
    cache read
    cache read
    row read: n: expected int, got "x"
    cache read
  step group 4 2 1
    batch group
    batch group
`} {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			seen := runObserved(t, document, "list", "x", `{"n": 1}`, `{"n": 2}`, `{"n": "x"}`, `{"n": 3}`)
			expectLines(t, seen.lines(), want)
		})
	}
}

// TestObserver_Workers: rows that workers process at the same time are below one step,
// and a called flow below the row that calls it.
func TestObserver_Workers(t *testing.T) {
	document := strings.Replace(observed, "flows:\n", `flows:
  - id: many
    variables: [{id: text, type: text}, {id: answer, type: text}, {id: copy, type: text}]
    inputs: [text]
    outputs: [copy]
    steps:
      - {type: LLMInference, id: say, model: plain, inputs: [text], outputs: [answer], concurrency_config: {num_workers: 4}}
      - {type: InvokeFlow, id: call, flow: inner, input_bindings: {text: answer}, output_bindings: {copy: copy}}
`, 1)
	document = strings.Replace(document, "models:\n", "models:\n  - {type: Model, id: plain, provider: mock, rules: [{text: ok}]}\n", 1)
	path, seen := testkit.WriteFile(t, "app.qtype.yaml", document), &tree{}
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{Observer: seen})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	const rows = 50
	inputs := slices.Repeat([]runtime.Input{runtime.Row(map[string]any{"text": "a"})}, rows)
	for _, err := range app.Run(t.Context(), "many", slices.Values(inputs)) {
		testkit.Must(t, err)
	}
	want := fmt.Sprintf("flow many %d %d 0\n  step say %d %d 0\n", rows, rows, rows, rows) +
		strings.Repeat("    row say\n      model plain\n", rows) + fmt.Sprintf("  step call %d %d 0\n", rows, rows) +
		strings.Repeat("    row call\n      flow inner 1 1 0\n        step copy_text 1 1 0\n          row copy_text\n", rows)
	expectLines(t, seen.lines(), want)
}

// TestObserver_Stopped: operations end, without an error, if the caller needs no more
// results.
func TestObserver_Stopped(t *testing.T) {
	app, seen := openCase(t, observed), &tree{}
	inputs := slices.Repeat([]runtime.Input{runtime.Row(map[string]any{"text": "a"})}, 3)
	for _, err := range app.Run(t.Context(), "inner", slices.Values(inputs), runtime.WithObserver(seen)) {
		testkit.Must(t, err)
		break
	}
	expectLines(t, seen.lines(), "flow inner 1 1 0\n  step copy_text 1 1 0\n    row copy_text")
}

// TestObserver_None: a run without observers reports nothing, and its results have no
// ids.
func TestObserver_None(t *testing.T) {
	app := openCase(t, observed)
	for r, err := range app.Run(t.Context(), "inner", slices.Values([]runtime.Input{runtime.Row(map[string]any{"text": "a"})})) {
		if err != nil || r.Trace != nil {
			t.Errorf("%v, %v", r.Trace, err)
		}
	}
}

// TestEvents_BatchAndLimitedSteps: batch steps and steps with fewer permits than their
// stage has workers report a start and an end for each row.
func TestEvents_BatchAndLimitedSteps(t *testing.T) {
	app := openCase(t, `
id: workers
models: [{type: Model, id: m, provider: mock, rules: [{text: ok}]}]
flows:
  - id: list
    variables: [{id: x, type: text}, {id: y, type: text}, {id: z, type: text}, {id: all, type: "list[text]"}]
    inputs: [x]
    outputs: [all]
    steps:
      - {type: LLMInference, id: many, model: m, inputs: [x], outputs: [y], concurrency_config: {num_workers: 4}}
      - {type: LLMInference, id: limited, model: m, inputs: [y], outputs: [z], concurrency_config: {num_workers: 2}}
      - {type: Collect, id: group, batch_config: {batch_size: 2}, inputs: [z], outputs: [all]}
`)
	var mu sync.Mutex
	count := map[string]int{}
	var rows []runtime.Input
	for _, v := range []string{"a", "b", "c"} {
		rows = append(rows, runtime.Row(map[string]any{"x": v}))
	}
	listen := func(ev steps.Event) {
		mu.Lock()
		defer mu.Unlock()
		count[fmt.Sprint(ev.Kind, " ", ev.Step, " ", ev.Row)]++
	}
	for _, err := range app.Run(t.Context(), "list", slices.Values(rows), runtime.WithEvents(listen, steps.EventStepStart, steps.EventStepEnd)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"many", "limited", "group"} {
		for row := 1; row <= 3; row++ {
			for _, kind := range []string{"step-start", "step-end"} {
				if name := fmt.Sprint(kind, " ", step, " ", row); count[name] != 1 {
					t.Errorf("%s was reported %d times", name, count[name])
				}
			}
		}
	}
}
