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

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// nestedTurnDocument has an agent whose tool is a flow that uses the memory MEMORY.
const nestedTurnDocument = `id: app
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
  - {type: FlowTool, id: ask_expert, flow: consult, description: Calls the expert.}
flows:
  - id: consult
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: expert_answer, model: expert, memory: MEMORY, inputs: [question], outputs: [answer]}
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: Agent, id: work, model: boss, memory: talk, tools: [ask_expert], inputs: [message], outputs: [answer]}
`

// TestNestedFlow_TurnOfSameSessionFails: a flow that an agent calls as a tool cannot
// open a turn of the agent's session: that is an error, not a deadlock. The validator
// reports it, but a Go program can change a document after that.
func TestNestedFlow_TurnOfSameSessionFails(t *testing.T) {
	for memory, want := range map[string]string{
		"notes": "Four miles.",
		"talk":  "has an active turn of session",
	} {
		t.Run(memory, func(t *testing.T) {
			p, list := qtype.Check(t.Context(), writeFile(t, strings.ReplaceAll(nestedTurnDocument, "MEMORY", "notes")))
			if err := list.Err(); err != nil {
				t.Fatal(err)
			}
			for _, m := range p.Document.Application.Memories {
				if m.ID == memory {
					p.Document.Application.Flows[0].Steps[0].Step.(*spec.LLMInference).Memory.To = m
				}
			}
			app, err := qtype.New(p, qtype.WithEphemeral())
			if err != nil {
				t.Fatal(err)
			}
			defer app.Close(context.Background())
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			input := runtime.Input{Session: "s", Values: map[string]any{"message": "How far is it?"}}
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

// TestNestedFlow_BuiltBeforeFirstRow: a step that cannot be built ends the run before
// the first row, with its position, also in a flow that no row may reach.
func TestNestedFlow_BuiltBeforeFirstRow(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	app := openApp(t, `id: app
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
	rows := func(func(runtime.Input) bool) { t.Error("a row was read") }
	var got error
	for _, err := range app.Run(t.Context(), "main", rows) {
		got = err
	}
	if got == nil || !strings.Contains(got.Error(), "app.qtype.yaml:9:9: step ask: ") || !strings.Contains(got.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v", got)
	}
}

// TestNestedFlow_ErrorNamesPath: an error in a nested flow names the steps that lead
// to it, and retry and on_error of these steps apply to it.
func TestNestedFlow_ErrorNamesPath(t *testing.T) {
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
		if got := runAll(t, openApp(t, strings.Replace(document, "MORE", more, 1)), "main", rows...); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", more, got, want)
		}
	}
}

// TestModel_FallbackPrices: if a model's server is down, its fallback is called, and
// the budget counts the price of the model that responded.
func TestModel_FallbackPrices(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer server.Close()
	const document = `id: app
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, base_url: '%s/v1', retry: {max_attempts: 1}, fallbacks: [second], prices: {input: 0}}
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
	row := map[string]any{"x": "Is the shop open?"}
	if got := runAll(t, openApp(t, strings.Replace(text, "BUDGET", "budget: {calls: 9}", 1)), "main", row); !slices.Equal(got, []string{"At your service."}) {
		t.Errorf("got %q", got)
	}
	var over *runtime.BudgetError
	for _, err := range openApp(t, strings.Replace(text, "BUDGET", "budget: {money: 1}", 1)).Run(t.Context(), "main", slices.Values(slices.Repeat([]runtime.Input{{Values: row}}, 3))) {
		if err != nil && !errors.As(err, &over) {
			t.Fatal(err)
		}
	}
	if over == nil || over.What != "money" {
		t.Errorf("the price of the fallback was not counted: %v", over)
	}
}
