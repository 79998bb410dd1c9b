package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/distribution"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// asks is a flow that calls a model for each row.
const asks = `id: asks
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, model: m, inputs: [text], outputs: [answer]}]
`

// A run that was killed writes each row once into its Parquet file, and repeats no call that was finished.
func TestRun_KilledParquet(t *testing.T) {
	testkit.SkipWithRace(t) // its commands would take ten times longer to start
	const rows = 40
	var calls atomic.Int64
	var kill atomic.Value // func(call int64)
	kill.Store(func(int64) {})
	server := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		kill.Load().(func(int64))(calls.Add(1))
		return "re: " + messages[len(messages)-1].Content, 0
	}))
	defer server.Close()
	folder := t.TempDir()
	var in strings.Builder
	in.WriteString("text\n")
	var want []string
	for i := range rows {
		fmt.Fprintln(&in, i)
		want = append(want, fmt.Sprintf("%d re: %d <nil>", i+1, i))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), fmt.Appendf(nil, asks, server.URL), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "in.csv"), []byte(in.String()), 0o600))
	out := filepath.Join(folder, "out.parquet")
	run := func(killAt int64) error {
		cmd := exec.CommandContext(t.Context(), "qtype", "run", "app.qtype.yaml", "-I", "in.csv", "-o", out, "--resume")
		cmd.Dir, cmd.Env, cmd.Stderr = folder, append(os.Environ(), "OPENAI_API_KEY=k"), os.Stderr
		kill.Store(func(call int64) {
			if call == killAt {
				_ = cmd.Process.Kill()
			}
		})
		return cmd.Run()
	}
	for _, at := range []int64{10, 25} {
		if err := run(at); err == nil {
			t.Fatalf("the run was not killed at call %d", at)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatal("the output is there after a kill")
		}
	}
	testkit.Must(t, run(0))
	if got := rowsOf(t, out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := calls.Load() - rows; again > 2*16 {
		t.Errorf("%d calls were repeated", again)
	}
}

// rowsOf returns the rows of a file.
func rowsOf(t *testing.T, path string) []string {
	t.Helper()
	r, err := records.Open(distribution.With(t.Context()), path, records.Options{})
	testkit.Must(t, err)
	defer func() { _ = r.Close() }() // only read
	var rows []string
	for rec, err := range r.All() {
		testkit.Must(t, err)
		rows = append(rows, strings.TrimSpace(fmt.Sprintln(rec.Values...)))
	}
	return rows
}
