package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// inWaves is a conversation, a second model, and a batch step between its calls.
const inWaves = `id: waves
memories: [{id: talk}]
auths: [{type: api_key, id: key, api_key: secret}]
models:
  - {type: Model, id: first, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", auth: key, prices: {input: 1000, output: 2000}}
  - {type: Model, id: second, provider: anthropic, model_id: claude-opus-4-6, base_url: "%[1]s", auth: key}
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}, {id: all, type: "list[text]"}, {id: one, type: text}, {id: last, type: text}]
    inputs: [text]
    outputs: [one, last]
    steps:
      - {type: LLMInference, id: say, model: first, memory: talk, inputs: [text], outputs: [answer]}
      - {type: Collect, id: some, inputs: [answer], outputs: [all], batch_config: {batch_size: 4}}
      - {type: Explode, id: each, inputs: [all], outputs: [one]}
      - {type: LLMInference, id: again, model: second, inputs: [one], outputs: [last]}
`

// newWavesCluster returns a cluster whose models have batches that end by End only.
func newWavesCluster(t *testing.T, document string, rows int) (*cluster, *batchtest.Server) {
	t.Helper()
	server := batchtest.New(1, batchtest.Faults{Polls: 1 << 30, Shuffled: true}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	in := "session,text\n"
	for i := range rows {
		in += fmt.Sprintf("s%d,message %d\n", i%(rows/2), i)
	}
	c := newCluster(t, fmt.Sprintf(document, at.URL), in)
	t.Setenv("TMPDIR", t.TempDir())
	return c, server
}

// show returns the only run, as qtype runs list and show have it; nothing if there is none yet.
func (c *cluster) show() (run durable.Run) {
	c.t.Helper()
	_, out, errs := c.qtype("runs", "list", "--engine", "temporal", "--format", "json")
	if out == "" {
		return run
	}
	if err := json.Unmarshal([]byte(out), &run); err != nil {
		c.t.Fatal(out, errs, err)
	}
	_, out, errs = c.qtype("runs", "show", run.ID, "--format", "json")
	if err := json.Unmarshal([]byte(out), &run); err != nil {
		c.t.Fatal(out, errs, err)
	}
	return run
}

// untilOpen waits until a wave has so many open batches that the provider has confirmed.
func (c *cluster) untilOpen(wave int64, batches int) durable.Run {
	c.t.Helper()
	for {
		run := c.show()
		confirmed := 0
		if run.Batches != nil && run.Batches.Wave == wave {
			for _, b := range run.Batches.Open {
				if b.ID != "" {
					confirmed++
				}
			}
		}
		if confirmed == batches {
			return run
		}
		if c.t.Context().Err() != nil {
			c.t.Fatal(c.t.Context().Err())
		}
	}
}

// withoutBatches returns the output of a run in one process, with conversations of its own.
func (c *cluster) withoutBatches() string {
	c.t.Helper()
	if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.jsonl", "-q", "--store", "memory:"); status != 0 {
		c.t.Fatal(errs)
	}
	return c.read("want.jsonl")
}

// TestTemporal_Waves: calls are made in batches. Workers are killed or stopped while these are open, and others continue: the output
// is that of a run in one process, and no call is paid twice.
func TestTemporal_Waves(t *testing.T) {
	const rows = 12
	c, server := newWavesCluster(t, inWaves, rows)
	worker := c.worker()
	result := c.start("--batch", "--heartbeat", "2s")
	for wave, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} { // two turns, and the second model
		run := c.untilOpen(int64(wave+1), 1)
		if run.Status != durable.WaitingStatus {
			t.Errorf("the status is %s", run.Status)
		}
		testkit.Must(t, worker.Process.Signal(signal))
		worker = c.worker()
		server.End()
	}
	got := <-result
	if !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "batches: 3 batches of 24 calls in 3 waves · saved ") {
		t.Fatal(got)
	}
	if calls, twice := server.Paid(); calls != 2*rows || twice > 0 {
		t.Errorf("%d calls were paid, %d twice", calls, twice)
	}
	if made, batches := server.Made(); made > 0 || batches != 3 {
		t.Errorf("%d calls at once, %d batches", made, batches)
	}
	made := c.read("out.jsonl")
	histories := c.history(c.dir, "s0") + c.history(c.dir, "s1")
	if diff := cmp.Diff(c.withoutBatches(), made); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(histories, "message 0") || !strings.Contains(histories, "message 6") {
		t.Error(histories)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "qtype-batches-*")); len(left) > 2 {
		t.Errorf("only killed workers leave folders: %v", left)
	}
}
