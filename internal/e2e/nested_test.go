package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// nestedTurn is an agent whose tool is a flow that speaks in the memory MEMORY.
const nestedTurn = `id: app
models:
  - type: Model
    id: boss
    provider: mock
    rules:
      - {after: tool, echo: true}
      - {tool_calls: [{name: consult, arguments: {question: How far is it?}}]}
  - {type: Model, id: expert, provider: mock, rules: [{text: Four miles.}]}
memories: [{id: talk}, {id: notes}]
tools:
  - {type: FlowTool, id: ask_expert, flow: consult, description: Asks the expert.}
flows:
  - id: consult
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: expert_says, model: expert, memory: MEMORY, inputs: [question], outputs: [answer]}
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [said]
    outputs: [answer]
    steps:
      - {type: Agent, id: work, model: boss, memory: talk, tools: [ask_expert], inputs: [said], outputs: [answer]}
`

// TestATurnWithinATurnDoesNotWaitForItself: a flow that an agent calls as its
// tool in the middle of its turn cannot have a turn of the same conversation;
// that it wants one is an error, not a wait for ever.
func TestATurnWithinATurnDoesNotWaitForItself(t *testing.T) {
	for memory, want := range map[string]string{
		"notes": "Four miles.",
		"talk":  "has an active turn of session",
	} {
		t.Run(memory, func(t *testing.T) {
			app := open(t, strings.ReplaceAll(nestedTurn, "MEMORY", memory))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			input := runtime.Input{Session: "s", Values: map[string]any{"said": "How far is it?"}}
			for row, err := range app.Run(ctx, "main", slices.Values([]runtime.Input{input})) {
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := row.Get("answer")
				if text := fmt.Sprint(value.Text(answer), " ", row.Err); !strings.Contains(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}
		})
	}
}

// TestAFlowThatAStepRunsIsBuiltBeforeTheFirstRow: a step that cannot be built
// ends the run at its start and names its place, also in a flow that no row may
// ever go through.
func TestAFlowThatAStepRunsIsBuiltBeforeTheFirstRow(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	app := open(t, `id: app
models: [{type: Model, id: distant, provider: openai}]
flows:
  - id: rare
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps:
      - {type: LLMInference, id: ask, model: distant, inputs: [x], outputs: [x]}
  - id: middle
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps:
      - {type: InvokeFlow, id: deeper, flow: rare, input_bindings: {x: x}, output_bindings: {x: x}}
  - id: main
    variables: [{id: x, type: text}]
    inputs: [x]
    outputs: [x]
    steps:
      - {type: Switch, id: choose, inputs: [x], outputs: [x], cases: [{when: x == "never", flow: middle}]}
`)
	rows := func(func(runtime.Input) bool) { t.Error("a row was asked for") }
	var got error
	for _, err := range app.Run(t.Context(), "main", rows) {
		got = err
	}
	if got == nil || !strings.Contains(got.Error(), "app.qtype.yaml:9:9: step ask: ") || !strings.Contains(got.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v", got)
	}
}

// TestAFailureInAFlowNamesTheWay: through all steps that run flows, and it is
// each of these steps' own failure: its retry and on_error hold for it.
func TestAFailureInAFlowNamesTheWay(t *testing.T) {
	const document = `id: app
flows:
  - id: inner
    variables: [{id: text, type: text}, {id: n, type: int}]
    inputs: [text]
    outputs: [n]
    steps:
      - {type: Decoder, id: read, format: json, inputs: [text], outputs: [n]}
  - id: middle
    variables: [{id: text, type: text}, {id: n, type: int}]
    inputs: [text]
    outputs: [n]
    steps:
      - {type: Loop, id: round, flow: inner, max_iterations: 1, inputs: [text], outputs: [n]}
  - id: main
    variables: [{id: text, type: text}, {id: n, type: 'int?'}]
    inputs: [text]
    outputs: [n]
    steps:
      - {type: InvokeFlow, id: begin, flow: middle, input_bindings: {text: text}, output_bindings: {n: n}MORE}
`
	rows := []map[string]any{{"text": `{"n": 1}`}, {"text": "one"}, {"text": `{"n": 3}`}}
	for more, want := range map[string][]string{
		"":                     {"1", `row 2: step begin > round > read: no JSON object in the text: "one"`, "3"},
		", on_error: skip":     {"1", "3"},
		", on_error: continue": {"1", "", "3"},
		", retry: {max_attempts: 2, initial_delay: 1ms}": {"1", `row 2: step begin > round > read: no JSON object in the text: "one"`, "3"},
	} {
		if got := outcomes(t, open(t, strings.Replace(document, "MORE", more, 1)), "main", rows...); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", more, got, want)
		}
	}
}

// TestFallbacksAnswerAndCostTheirOwn: a model whose server is down has its
// fallback asked, and the flow's budget takes the prices of who has answered.
func TestFallbacksAnswerAndCostTheirOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer server.Close()
	const document = `id: app
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-4o-mini, base_url: '%s/v1', retry: {max_attempts: 1}, fallbacks: [second], prices: {input: 0}}
  - {type: Model, id: second, provider: mock, rules: [{status: 503, error: busy}], fallbacks: [third]}
  - {type: Model, id: third, provider: mock, rules: [{text: At your service.}], prices: {input: 1000000}}
flows:
  - id: main
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    BUDGET
    steps:
      - {type: LLMInference, id: ask, model: first, inputs: [x], outputs: [y]}
`
	text := fmt.Sprintf(document, server.URL)
	row := map[string]any{"x": "Is anybody there?"}
	if got := outcomes(t, open(t, strings.Replace(text, "BUDGET", "budget: {calls: 9}", 1)), "main", row); !slices.Equal(got, []string{"At your service."}) {
		t.Errorf("got %q", got)
	}
	var over *runtime.BudgetError
	for _, err := range open(t, strings.Replace(text, "BUDGET", "budget: {money: 1}", 1)).Run(t.Context(), "main", slices.Values(slices.Repeat([]runtime.Input{{Values: row}}, 3))) {
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
	}
	if over == nil || over.What != "money" {
		t.Errorf("the fallback's price was not counted: %v", over)
	}
}
