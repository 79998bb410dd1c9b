//go:build unix

package command

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestRun_BatchesMeasured: rows of conversations go through three steps, with and without --batch, and the output is the
// same. With QTYPE_TEST_BATCH_ROWS=100000, which make measure-batches sets, it measures what both runs cost by the
// account of the server, and the memory of both processes.
func TestRun_BatchesMeasured(t *testing.T) {
	rows, sessions := 200, 20
	if text := os.Getenv("QTYPE_TEST_BATCH_ROWS"); text != "" {
		n, err := strconv.Atoi(text)
		testkit.Must(t, err)
		rows, sessions = n, 2000
	}
	t.Setenv("QTYPE_HOME", t.TempDir())
	in := []byte("session,question\n")
	for i := range rows {
		in = fmt.Appendf(in, "s%d,question %d\n", i%sessions, i)
	}
	run := func(flags ...string) (out []byte, memory int64, server *batchtest.Server) {
		server = batchtest.New(1, batchtest.Faults{}, batchtest.Deterministic)
		at := httptest.NewServer(server)
		defer at.Close()
		dir := t.TempDir()
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "in.csv"), in, 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(strings.ReplaceAll(`id: app
memories: [{id: chat}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-4.1, api: chat, base_url: "URL/v1", auth: key}
  - {type: Model, id: second, provider: anthropic, model_id: claude-opus-4-6, base_url: "URL", auth: key}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: reply, type: text}, {id: summary, type: text}, {id: verdict, type: text}]
    inputs: [question]
    outputs: [reply, summary, verdict]
    steps:
      - {type: LLMInference, id: respond, model: first, memory: chat, inputs: [question], outputs: [reply], concurrency_config: {num_workers: 8}}
      - {type: LLMInference, id: shorten, model: second, system_message: be short, inputs: [reply], outputs: [summary], concurrency_config: {num_workers: 8}}
      - {type: LLMInference, id: judge, model: first, inputs: [summary], outputs: [verdict], concurrency_config: {num_workers: 8}}
`, "URL", at.URL)), 0o600))
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), "qtype", append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl"}, flags...)...)
		cmd.Dir = dir
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		memory = usage.Maxrss >> 10
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%v: %s, %d MB of memory\n%s", flags, time.Since(began).Round(time.Second), memory, strings.Join(lines[max(0, len(lines)-5):], "\n"))
		out, err = os.ReadFile(filepath.Join(dir, "out.jsonl"))
		testkit.Must(t, err)
		return out, memory, server
	}
	want, normal, plain := run()
	got, inBatches, server := run("--batch")
	if !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != rows {
		t.Errorf("the output differs: %d and %d bytes", len(want), len(got))
	}
	all, _ := plain.Made()
	atOnce, batches := server.Made()
	paid, twice := server.Paid()
	if all != 3*rows || paid != 3*rows || twice > 0 || atOnce > 0 {
		t.Errorf("%d calls without batches, %d with, %d twice and %d at once; want %d", all, paid, twice, atOnce, 3*rows)
	}
	share, times := float64(paid)/2/float64(all), float64(inBatches)/float64(normal)
	t.Logf("%d batches, %.1f %% of the normal price, %.2f times the memory", batches, 100*share, times)
	if share > 0.52 || rows >= 100_000 && times > 2 {
		t.Error("more than 52 % of the price, or twice the memory")
	}
}
