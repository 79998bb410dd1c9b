package qtype_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/value"
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
		"talk":  "is in the middle of its turn of session",
	} {
		t.Run(memory, func(t *testing.T) {
			app := open(t, strings.ReplaceAll(nestedTurn, "MEMORY", memory))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
