package runtime_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/runtime"
)

// TestSegments_EqualBatchesAreSeparateTurns: also if the first of them is replayed and
// the second is processed again.
func TestSegments_EqualBatchesAreSeparateTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	document := `id: app
models: [{type: Model, id: m, provider: mock, rules: [{echo: true}]}]
memories: [{id: talk, policy: message_window, max_messages: 100}]
flows:
  - id: main
    variables: [{id: x, type: text}, {id: xs, type: "list[text]"}, {id: text, type: text}, {id: answer, type: text}]
    inputs: [x]
    outputs: [answer]
    steps:
      - {type: PromptTemplate, id: make, template: "{x}", inputs: [x], outputs: [text]}
      - {type: Collect, id: gather, inputs: [text], outputs: [xs], batch_config: {batch_size: 2}}
      - {type: PromptTemplate, id: join, template: "{xs}", inputs: [xs], outputs: [text]}
      - {type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}
`
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Close(t.Context()) }()
	run := func(session string, store *runtime.HeapStore) (answers []string, err error) {
		var rows []runtime.Input
		for range 6 {
			rows = append(rows, runtime.Input{Values: map[string]any{"x": "hi"}, Session: session})
		}
		for res, err := range app.Run(t.Context(), "main", slices.Values(rows), runtime.WithStore(store, "main", "run "+session)) {
			if err != nil {
				return answers, err
			}
			v, _ := res.Get("answer")
			answers = append(answers, fmt.Sprint(v, res.Err))
		}
		return answers, nil
	}
	want, err := run("calm", runtime.NewHeapStore(-1))
	if err != nil || len(want) != 3 || want[0] == want[1] {
		t.Fatal(want, err)
	}
	store := runtime.NewHeapStore(5) // four rows and a batch
	if _, err := run("ended", store); !errors.Is(err, runtime.ErrFull) {
		t.Fatal(err)
	}
	store.More(-1)
	if got, err := run("ended", store); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
	}
}
