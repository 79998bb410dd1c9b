package batch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/batch"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// asking is a document whose rows call a model once.
const asking = `id: app
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: ask
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: respond, model: m, inputs: [question], outputs: [answer], concurrency_config: {num_workers: 2}}]
`

// provider is a server that answers with isAway(number of the request, question) false.
func provider(t *testing.T, isAway func(n int64, question string) bool) string {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		question := messages[len(messages)-1].Content
		if isAway(n.Add(1), question) {
			return "", http.StatusServiceUnavailable
		}
		return "answer to " + question, 0
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// ask runs rows from file to file in the working directory.
func ask(t *testing.T, outage time.Duration, resume bool) (errs string, err error) {
	t.Helper()
	app, err := qtype.Open(t.Context(), "app.qtype.yaml")
	testkit.Must(t, err)
	defer app.Close(context.Background())
	var stdout, stderr strings.Builder
	streams := &terminal.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Width: 200}
	err = batch.Run(t.Context(), app, batch.Config{InputFile: "in.csv", Output: "out.csv", Outage: outage, Resume: resume, Streams: streams})
	return stderr.String(), err
}

// TestRun_Outage: rows wait for a provider that is away. A provider that stays away ends the run, which continues
// with the rows that have waited.
func TestRun_Outage(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "x")
	const done = "row,answer,error\n1,answer to 1,\n2,answer to 2,\n3,answer to 3,\n4,answer to 4,\n5,answer to 5,\n"
	start := func(t *testing.T, isAway func(n int64, question string) bool) {
		t.Chdir(t.TempDir())
		testkit.Must(t, os.WriteFile("app.qtype.yaml", fmt.Appendf(nil, asking, provider(t, isAway)), 0o600))
		testkit.Must(t, os.WriteFile("in.csv", []byte("question\n1\n2\n3\n4\n5\n"), 0o600))
	}
	written := func(t *testing.T) string {
		t.Helper()
		out, err := os.ReadFile("out.csv")
		testkit.Must(t, err)
		return string(out)
	}
	t.Run("ends", func(t *testing.T) {
		start(t, func(n int64, _ string) bool { return n <= 5 })
		errs, err := ask(t, time.Hour, false)
		if err != nil || written(t) != done {
			t.Errorf("%v\n%s\n%s", err, errs, written(t))
		}
	})
	t.Run("lasts", func(t *testing.T) {
		var isBack atomic.Bool
		start(t, func(int64, string) bool { return !isBack.Load() })
		errs, err := ask(t, time.Millisecond, false)
		if err == nil || !strings.Contains(err.Error(), "stopped: 3 rows in a row failed") || !strings.Contains(err.Error(), "waited 1ms for it") {
			t.Errorf("%v\n%s", err, errs)
		}
		isBack.Store(true)
		if errs, err = ask(t, time.Millisecond, true); err != nil || written(t) != done {
			t.Errorf("%v\n%s\n%s", err, errs, written(t))
		}
	})
	t.Run("none", func(t *testing.T) {
		start(t, func(n int64, _ string) bool { return n <= 2 })
		errs, err := ask(t, 0, false)
		if !errors.Is(err, batch.ErrRowsFailed) || strings.Count(written(t), "answer to") != 3 {
			t.Errorf("%v\n%s\n%s", err, errs, written(t))
		}
	})
}
