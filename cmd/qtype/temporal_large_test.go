//go:build temporal

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestTemporal_Large: four workers, two of which are killed, and a server that is killed and
// restarted: the output is that of a local run. QTYPE_TEMPORAL_ROWS is the number of rows.
func TestTemporal_Large(t *testing.T) {
	rows := 20_000
	if text := os.Getenv("QTYPE_TEMPORAL_ROWS"); text != "" {
		var err error
		rows, err = strconv.Atoi(text)
		testkit.Must(t, err)
	}
	c := newCluster(t, computes, numbers(rows))
	var workers []*exec.Cmd
	for range 4 {
		workers = append(workers, c.worker("--parallel", "2"))
	}
	result := make(chan string, 1)
	go func() {
		began := time.Now()
		status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "got.csv", "--engine", "temporal", "--heartbeat", "2s")
		result <- fmt.Sprintf("%d after %s: %s", status, time.Since(began), errs)
	}()
	for i, kill := range []func() error{workers[0].Process.Kill, c.server.Kill, workers[1].Process.Kill} {
		c.awaitRows(int64(i*rows/4), result)
		testkit.Must(t, kill())
		if i == 1 {
			testkit.Must(t, c.server.Restart())
		}
	}
	t.Log(<-result)
	_, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.csv")
	t.Log(errs)
	if c.read("got.csv") != c.read("want.csv") {
		t.Error("the output differs from that of a local run")
	}
	for _, w := range workers[2:] {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Process.Pid)); err == nil { // on Linux
			t.Logf("worker: %s", regexp.MustCompile("VmHWM.*").Find(status))
		}
	}
}

// awaitRows waits until the only run has finished a number of rows, or ended.
func (c *cluster) awaitRows(n int64, ended <-chan string) {
	c.t.Helper()
	for id := ""; ; {
		if all := c.runs(); len(all) > 0 {
			id = all[0].ID
		}
		var r durable.Run
		if id != "" {
			_, out, _ := c.qtype("runs", "show", id, "--format", "json")
			if err := json.Unmarshal([]byte(out), &r); err == nil && (r.Rows > n || r.Status != "running") {
				return
			}
		}
		select {
		case text := <-ended:
			c.t.Fatalf("the run has ended: %s", text)
		case <-time.After(100 * time.Millisecond): // it polls
		}
	}
}
