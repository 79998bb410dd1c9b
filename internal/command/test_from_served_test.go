package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// TestTestMaker makes a test of a conversation of a server: of its second turn alone, without the address of a person, and it passes in the
// folder of the document.
func TestTestMaker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(`id: app
models: [{type: Model, id: m, provider: mock, rules: [{match: hello, text: Hello!}, {text: "I cannot, $$5."}]}]
memories: [{id: chat}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: q, type: ChatMessage}, {id: a, type: ChatMessage}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: reply, model: m, memory: chat, inputs: [q], outputs: [a]}]
`), 0o600))
	app, err := qtype.Open(t.Context(), path, qtype.WithEphemeral())
	testkit.Must(t, err)
	defer func() { testkit.Must(t, app.Close(t.Context())) }()
	for _, q := range []string{"hello", "refund ada@shop.test"} {
		for r, err := range app.Run(t.Context(), "talk", slices.Values([]runtime.Input{{Session: "s", Columns: []string{"q"}, Cells: []any{q}}})) {
			testkit.Must(t, err)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	text, err := testMaker(path)(t.Context(), app, "chat", "s", 0)
	testkit.Must(t, err)
	for _, want := range []string{"# 1 of 2 turns", "# replaced in the conversation: 1 e-mail address\n", "\napp: app.qtype.yaml\n", "q: refund person1@example.com\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	file := filepath.Join(filepath.Dir(path), "s-2.qtype-test.yaml")
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	reports, err := qtype.Test(t.Context(), []string{file}, qtype.TestOptions{})
	testkit.Must(t, err)
	if len(reports) != 1 || len(reports[0].Outcomes) != 1 || len(reports[0].Outcomes[0].Diagnostics) != 0 {
		t.Errorf("%+v", reports)
	}
	if _, err := testMaker(path)(t.Context(), app, "chat", "s", 7); err == nil || !strings.Contains(err.Error(), "has no turn 7") {
		t.Error(err)
	}
}
