package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
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

// TestUnsupported_ErrorNamesPosition: the document is valid, and running it returns
// an error with the position of the feature.
func TestUnsupported_ErrorNamesPosition(t *testing.T) {
	const (
		tool  = "type: APITool, name: help, description: Helps, endpoint: \"http://127.0.0.1:9/\""
		agent = "type: Agent, outputs: [answer], model: writer, memory: recent, tools: [help]"
	)
	for want, text := range map[string]string{
		"app.qtype.yaml:6:31: model writer: provider aws-bedrock": strings.Replace(unsupportedDocument("", "", tool, "", agent, ""), "provider: mock", "provider: aws-bedrock, model_id: nova", 1),
	} {
		t.Run(want, func(t *testing.T) {
			text = strings.ReplaceAll(text, "provider: aws-bedrock, model_id: nova, rules: [{text: Good morning.}]", "provider: aws-bedrock, model_id: nova")
			path := writeFile(t, text)
			if _, diags := qtype.Check(t.Context(), path); diags.Err() != nil {
				t.Fatalf("the document is not valid: %v", diags.Err())
			}
			err := runOne(t, path)
			if err == nil {
				t.Fatal("the run succeeded")
			}
			if got := strings.ReplaceAll(err.Error(), path, "app.qtype.yaml"); got != want+" is not available yet" {
				t.Errorf("got  %s\nwant %s is not available yet", got, want)
			}
		})
	}
}

// runOne opens an application, runs its flow on one row and returns the error of either.
func runOne(t *testing.T, path string) error {
	t.Helper()
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	if err != nil {
		return err
	}
	defer func() { _ = app.Close(t.Context()) }()
	for row, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"message": "hello"})})) {
		if err != nil {
			return err
		}
		t.Logf("row: %v, %v", row.Outputs(), row.Err)
	}
	return nil
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
