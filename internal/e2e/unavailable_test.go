package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/runtime"
)

// notYet is a document with one thing that this version cannot do, in the place
// of each empty word.
func notYet(memory, model, tool, flow, step, app string) string {
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
    variables: [{id: said, type: ChatMessage}]
    inputs: [said]
    outputs: [said]
    steps: [{type: Echo, id: pass, inputs: [said], outputs: [said]}]
  - id: main
    variables: [{id: said, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [said]
    outputs: [answer]%s
    steps:
      - {id: ask, inputs: [said], %s}
`, app, memory, model, tool, flow, step)
}

// TestWhatCannotRunYetSaysSo: the document is valid, and a run of it ends with
// one error that names the place, instead of passing the setting over.
func TestWhatCannotRunYetSaysSo(t *testing.T) {
	const (
		tool  = "type: APITool, name: help, description: Helps, endpoint: \"http://127.0.0.1:9/\""
		agent = "type: Agent, outputs: [answer], model: writer, memory: recent, tools: [help]"
	)
	for want, text := range map[string]string{
		"app.qtype.yaml:6:31: model writer: provider aws-bedrock": strings.Replace(notYet("", "", tool, "", agent, ""), "provider: mock", "provider: aws-bedrock, model_id: nova", 1),
	} {
		t.Run(want, func(t *testing.T) {
			text = strings.ReplaceAll(text, "provider: aws-bedrock, model_id: nova, rules: [{text: Good morning.}]", "provider: aws-bedrock, model_id: nova")
			path := write(t, text)
			if _, faults := qtype.Check(t.Context(), path); faults.Err() != nil {
				t.Fatalf("the document is not valid: %v", faults.Err())
			}
			err := runOnce(t, path)
			if err == nil {
				t.Fatal("the run went on without it")
			}
			if got := strings.ReplaceAll(err.Error(), path, "app.qtype.yaml"); got != want+" is not available yet" {
				t.Errorf("got  %s\nwant %s is not available yet", got, want)
			}
		})
	}
}

// runOnce opens an application and runs its flow on one row; it answers what ended that.
func runOnce(t *testing.T, path string) error {
	t.Helper()
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	if err != nil {
		return err
	}
	defer func() { _ = app.Close(t.Context()) }()
	for row, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{runtime.Row(map[string]any{"said": "hello"})})) {
		if err != nil {
			return err
		}
		t.Logf("row: %v, %v", row.Outputs(), row.Err)
	}
	return nil
}

// TestAMemoryCountsWithTheTokenizerThatItNames: the vocabularies differ in what
// they make of a text, so the memory's tokens do.
func TestAMemoryCountsWithTheTokenizerThatItNames(t *testing.T) {
	counts := map[string]int{}
	for _, name := range []string{"o200k_base", "r50k_base"} {
		app := open(t, notYet(", tokenizer: "+name, "", "type: APITool, name: help, description: Helps, endpoint: \"http://127.0.0.1:9/\"", "",
			"type: LLMInference, outputs: [answer], model: writer, memory: recent", ""))
		for _, err := range app.Run(t.Context(), "main", slices.Values([]runtime.Input{{Session: "s", Values: map[string]any{"said": "Grüß Gott, wie geht es Ihnen heute? 你好世界"}}})) {
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
