package e2e_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
)

// unsupportedDocument returns a document with a feature that this version does not
// support; each parameter is inserted in one entity.
func unsupportedDocument(memory, model, tool, flow, step, app string) string {
	return fmt.Sprintf(`id: app
%s
memories:
  - {id: recent%s}
models:
  - {type: Model, id: writer, provider: mock, rules: [{text: Good morning.}]%s}
  - {type: Model, id: spare, provider: mock}
tools:
  - {id: help, %s}
flows:
  - id: helper
    variables: [{id: message, type: ChatMessage}]
    inputs: [message]
    outputs: [message]
    steps: [{type: Echo, id: pass, inputs: [message], outputs: [message]}]
  - id: main
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]%s
    steps:
      - {id: ask, inputs: [message], %s}
`, app, memory, model, tool, flow, step)
}

// TestMemory_Tokenizer: token counts of a memory depend on its tokenizer.
func TestMemory_Tokenizer(t *testing.T) {
	counts := map[string]int{}
	for _, name := range []string{"o200k_base", "r50k_base"} {
		app := openApp(t, unsupportedDocument(", tokenizer: "+name, "", "type: APITool, name: help, description: Helps, endpoint: \"http://127.0.0.1:9/\"", "",
			"type: LLMInference, outputs: [answer], model: writer, memory: recent", ""))
		for _, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{{Session: "s", Values: map[string]any{"message": "Grüß Gott, wie geht es Ihnen heute? 你好世界"}}})) {
			if err != nil {
				t.Fatal(err)
			}
		}
		window, err := app.Memory("recent").Window(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		counts[name] = window.Tokens
	}
	if counts["o200k_base"] == 0 || counts["o200k_base"] >= counts["r50k_base"] {
		t.Errorf("counted %v", counts)
	}
}
