package uistream_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/uistream"
	"github.com/qtype-dev/qtype/spec/chat"
)

// talkDocument is a flow whose model answers ANSWER.
const talkDocument = `id: bench
models: [{type: Model, id: mock, provider: mock, rules: [{text: ANSWER}]}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: mock, inputs: [message], outputs: [answer]}]
`

// finishedRun returns a run whose answer had 50 deltas.
func finishedRun(b *testing.B) *runs.Run {
	b.Helper()
	path := filepath.Join(b.TempDir(), "app.qtype.yaml")
	answer := strconv.Quote(strings.Repeat("twenty-four-characters. ", 50))
	if err := os.WriteFile(path, []byte(strings.Replace(talkDocument, "ANSWER", answer, 1)), 0o600); err != nil {
		b.Fatal(err)
	}
	app, err := qtype.Open(b.Context(), path, qtype.WithEphemeral())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = app.Close(b.Context()) })
	flow, err := app.Flow("talk")
	if err != nil {
		b.Fatal(err)
	}
	m := runs.NewManager(runs.Options{})
	b.Cleanup(func() { _ = m.Shutdown(b.Context()) })
	rows := []map[string]any{{"message": chat.Text(chat.User, "hello")}}
	run, err := m.Begin(b.Context(), runs.Start{App: app, Flow: flow, Rows: rows, Events: true})
	if err == nil {
		err = run.Wait(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return run
}

// BenchmarkEncoder measures the chunks of a run whose answer has 50 deltas.
func BenchmarkEncoder(b *testing.B) {
	run := finishedRun(b)
	flow := schema.NewFlow(run.Flow)
	events := run.Events(run.Count())
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		enc := uistream.NewEncoder(flow, run.ID, nil)
		buf = buf[:0]
		for i := range events {
			buf = enc.Append(buf, &events[i])
		}
	}
	b.SetBytes(int64(len(buf)))
}
