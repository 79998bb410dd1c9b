package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// TestTemporal_Conversations: workers are killed at random between calls of models and the results of their tools. The
// providers get back all that they sent, unchanged, whichever worker continues, and nothing of each other, although all
// models have the same sessions. QTYPE_CONVERSATIONS is the number of conversations.
func TestTemporal_Conversations(t *testing.T) {
	const parallel = 4
	n := max(conversations(t)/len(speakers), 1) // of each model
	var input strings.Builder
	input.WriteString("session,question\n")
	for turn := range 3 {
		for i := range n {
			fmt.Fprintf(&input, "s%d,Question %d: where are my orders?\n", i, turn+1)
		}
	}
	for _, key := range keys {
		name, value, _ := strings.Cut(key, "=")
		t.Setenv(name, value)
	}
	d := newDesktop(t)
	calls := make(chan struct{}, 1<<20)
	d.hook.Store(func() { calls <- struct{}{} })
	c := newCluster(t, d.document("random", speakers...), input.String())
	workers := []*exec.Cmd{c.worker("--parallel", fmt.Sprint(parallel)), c.worker("--parallel", fmt.Sprint(parallel))}
	var runs sync.WaitGroup
	for i := range speakers {
		runs.Go(func() {
			run := c.command(t.Context(), "run", "app.qtype.yaml", "-f", fmt.Sprint("f", i), "-I", "in.csv", "-o", fmt.Sprintf("out%d.jsonl", i), "--engine", "temporal", "--heartbeat", "2s")
			var errs bytes.Buffer
			run.Stderr = &errs
			if _ = run.Run(); run.ProcessState.ExitCode() > 1 { // some answers cannot be completed, and fail their rows
				t.Errorf("status %d: %s", run.ProcessState.ExitCode(), errs.String())
			}
		})
	}
	ended := make(chan error, 1)
	go func() { runs.Wait(); ended <- nil }()
	killed := c.killAtRandom(calls, workers, ended, 2*len(speakers), parallel)
	list, requests, returned := d.wrong()
	for _, text := range list {
		t.Error(text)
	}
	t.Logf("%d conversations, %d workers killed: %d requests, %d items came back", n*len(speakers), killed, requests, returned)
	if killed == 0 || returned == 0 {
		t.Error("too few for a test")
	}
}
