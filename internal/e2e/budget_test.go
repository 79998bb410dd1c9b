package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
)

func TestBudget_EndsRun(t *testing.T) {
	s := startModelServer(t, func(int, request) string { return assistantMessage("fine") }) // each response reports 10 input and 5 output tokens
	for budget, over := range map[string]string{
		"{tokens: 40}":      "flow talk is over its budget: 45 tokens, 40 are allowed",
		"{calls: 2}":        "flow talk is over its budget: 3 calls, 2 are allowed",
		"{money: 0.00005}":  "flow talk is over its budget: 0.00006 money, 0.00005 are allowed",
		"{seconds: 1.0e-9}": "flow talk is over its budget: more than 1e-09 seconds, 1e-09 are allowed",
	} {
		app := openApp(t, fmt.Sprintf(`
id: chat
models: [{type: Model, id: m, provider: openai, base_url: "%s/v1", prices: {input: 1, output: 2}}]
flows:
  - id: talk
    budget: %s
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: answer, model: m, inputs: [message], outputs: [reply]}
`, s.URL, budget))
		rows := slices.Repeat([]runtime.Input{runtime.Row(map[string]any{"message": "hi"})}, 10)
		var end error
		n := 0
		for _, err := range app.Run(t.Context(), "talk", slices.Values(rows)) {
			if err != nil {
				end = err
				continue
			}
			n++
		}
		var spent *runtime.BudgetError
		if !errors.As(end, &spent) || end.Error() != over || n >= 10 {
			t.Errorf("%s: %d rows, ended with %v, want %q", budget, n, end, over)
		}
	}
}

// TestBudget_EndlessTime does not end a run whose time is longer than that of the clock.
func TestBudget_EndlessTime(t *testing.T) {
	for _, seconds := range []string{"1.0e+300", "9223372036.9"} {
		app := openApp(t, `
id: app
flows:
  - id: main
    budget: {seconds: `+seconds+`}
    variables: [{id: q, type: text}, {id: a, type: text}]
    inputs: [q]
    outputs: [a]
    steps: [{type: PromptTemplate, id: fill, template: "[{q}]", inputs: [q], outputs: [a]}]
`)
		for _, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"q": "x"})})) {
			if err != nil {
				t.Errorf("%s: %v", seconds, err)
			}
		}
	}
}
