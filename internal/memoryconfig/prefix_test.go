package memoryconfig_test

import (
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/memoryconfig"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// TestKeepsContext: without a choice, the context stays for models that bind their reasoning.
func TestKeepsContext(t *testing.T) {
	const document = `
id: app
models: [{type: Model, id: writer, provider: %s, model_id: %s}]
memories: [{id: talks%s}]
flows:
  - id: chat
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: writer, memory: talks, inputs: [message], outputs: [answer]}]
`
	const context = ", context: [{type: variables}]"
	for _, test := range []struct {
		provider, model, keys string
		want                  bool
	}{
		{"anthropic", "claude-haiku-5-5", context, true},
		{"anthropic", "claude-haiku-5-5", "", false},
		{"anthropic", "claude-haiku-5-5", ", prefix: fresh" + context, false},
		{"openai", "gpt-5.5", context, false},
		{"openai", "gpt-5.5", ", prefix: stable" + context, true},
		{"openai", "gpt-5.5", ", prefix: stable, context: [{type: pinned, text: Be kind.}]", false},
	} {
		path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(document, test.provider, test.model, test.keys))
		result, diagnostics := loader.Load(t.Context(), path, loader.Options{})
		validate.Check(result.Document) // it links; one document has a warning
		testkit.Must(t, diagnostics.Err())
		app := result.Document.Application
		if got := memoryconfig.KeepsContext(app, app.Memories[0]); got != test.want {
			t.Errorf("%s %s%s: %t, want %t", test.provider, test.model, test.keys, got, test.want)
		}
	}
}
