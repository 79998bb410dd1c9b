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
	c.temp = t.TempDir()
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
	for looks := 0; ; looks++ { // each starts two processes
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
		if looks == 100 {
			c.t.Fatalf("%+v", run)
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
	t.Parallel()
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
	if left, _ := filepath.Glob(filepath.Join(c.temp, "qtype-batches-*")); len(left) > 2 {
		t.Errorf("only killed workers leave folders: %v", left)
	}
}

// TestTemporal_WavesCommands: a run is left, canceled, continued and replaced.
func TestTemporal_WavesCommands(t *testing.T) {
	t.Parallel()
	const rows = 8
	c, server := newWavesCluster(t, inWaves, rows)
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--heartbeat", "2s", "--batch"}
	expect := func(status int, text string, args ...string) {
		t.Helper()
		if got, _, errs := c.qtype(args...); got != status || !strings.Contains(errs, text) {
			t.Fatalf("%v: %d: %s", args, got, errs)
		}
	}
	until := func(is func(durable.Run) bool) {
		t.Helper()
		run := c.show()
		for looks := 0; !is(run); looks++ { // each starts two processes
			if run = c.show(); looks == 100 {
				t.Fatalf("%+v", run)
			}
		}
	}
	isCanceled := func(run durable.Run) bool { return run.Status == "canceled" }
	with := func(flags ...string) []string { return append(run[:len(run):len(run)], flags...) }
	expect(1, "--cancel: out.jsonl has no batches of an interrupted run", with("--cancel")...)
	expect(3, "workers go on with workflow qtype-waves-main-", with("--detach")...)
	open := c.untilOpen(1, 1)
	expect(3, "; collect the output with: qtype run app.qtype.yaml", with("--detach", "--resume")...)
	expect(1, "use --resume to continue or --restart to start over", run...)
	expect(1, "--finish-after: workflow "+open.ID+" goes on without it", with("--resume", "--finish-after", "1h")...)
	expect(1, "this is not the run that was interrupted", append(run[:len(run)-1:len(run)-1], "--resume")...)
	expect(1, "continue it with --batch --resume, or cancel them and start over with --batch --restart", append(run[:len(run)-1:len(run)-1], "--restart")...)

	expect(0, "repeat the command to cancel them", "runs", "cancel", open.ID)
	until(isCanceled)
	if left := c.show(); left.Batches == nil || len(left.Batches.Open) != 1 {
		t.Fatalf("%+v", left)
	}
	expect(0, "workers cancel the batches", "runs", "cancel", open.ID)
	until(func(durable.Run) bool { return server.Canceled() == 1 })
	until(isCanceled)
	expect(3, "workers go on", with("--resume", "--detach")...) // the calls are sent again
	c.untilOpen(2, 1)
	if _, batches := server.Made(); batches != 2 {
		t.Errorf("%d batches", batches)
	}
	expect(0, "1 batch of the earlier run canceled; collect", with("--cancel")...)

	expect(3, "workers go on", with("--resume", "--detach")...)
	c.untilOpen(3, 1)
	expect(3, "workers go on", with("--restart", "--detach")...)
	until(func(durable.Run) bool { return server.Canceled() == 3 })
	c.untilOpen(1, 1)
	expect(0, "", "runs", "cancel", open.ID)
	until(isCanceled)
	expect(0, "16 calls made at once", with("--resume", "--finish-after", "100")...)
	calls, twice := server.Paid()
	if made, _ := server.Made(); made != 2*rows || calls > 0 || twice > 0 {
		t.Errorf("%d calls at once, %d in batches, %d twice", made, calls, twice)
	}
	made := c.read("out.jsonl")
	if diff := cmp.Diff(c.withoutBatches(), made); diff != "" {
		t.Error(diff)
	}
}

// TestTemporal_WavesRefused: what cannot be meant is an error with its reason, before anything runs.
func TestTemporal_WavesRefused(t *testing.T) {
	t.Parallel()
	c, _ := newWavesCluster(t, inWaves, 4)
	for flags, want := range map[string]string{
		"--batch=flex":              "workers make calls as their document declares",
		"--batch --detach --cancel": "--cancel excludes --detach",
		"--batch --store memory:":   "--store is a flag of qtype worker",
	} {
		status, _, errs := c.qtype(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal"}, strings.Fields(flags)...)...)
		if status != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d: %s", flags, status, errs)
		}
	}
}
