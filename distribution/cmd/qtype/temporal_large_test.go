package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// remembers is a flow with a memory on a server, whose model answers in the process.
const remembers = `id: remembers
models: [{type: Model, id: m, provider: mock, rules: [{match: '(?s)(.*)', text: 'You sent: $1'}]}]
stores: [{id: db, type: postgres, url: "STORE"}]
memories: [{id: talk, policy: message_window, max_messages: 4, store: db}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`

// largeRows returns the number of rows of a large run: QTYPE_TEMPORAL_ROWS, or a number. A run of so few rows ends before the failures,
// unless each row is slow: by replace, a text and its replacement in the document.
func largeRows(t *testing.T, otherwise int, document string, replace ...string) (rows int, slowly string) {
	t.Helper()
	text := os.Getenv("QTYPE_TEMPORAL_ROWS")
	if text == "" {
		return otherwise, strings.NewReplacer(replace...).Replace(document)
	}
	rows, err := strconv.Atoi(text)
	testkit.Must(t, err)
	return rows, document
}

// TestTemporal_Large: four workers, two of which are killed, and a server that is killed and
// restarted: the output is that of a local run. QTYPE_TEMPORAL_ROWS is the number of rows.
func TestTemporal_Large(t *testing.T) {
	rows, slowly := largeRows(t, 10_000, computes, "n * 2]", "n * 2 + len(filter(1..10000, # < 0))]")
	c := newCluster(t, slowly, numbers(rows))
	c.runLarge(rows)
	c.checkLocal()
}

// TestTemporal_LargeMemory is TestTemporal_Large with turns of 1,000 sessions: each message is
// once in its memory, and no turn is recorded as failed.
func TestTemporal_LargeMemory(t *testing.T) {
	const sessions = 1_000
	db, err := servertest.Postgres("-c", "fsync=off") // it is not killed
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, db.Close()) })
	document := strings.ReplaceAll(remembers, "STORE", db.URL())
	rows, slowly := largeRows(t, 4_000, document, "text: 'You sent", "delay: 10ms, text: 'You sent")
	var input strings.Builder
	input.WriteString("session,text\n")
	for i := range rows {
		fmt.Fprintf(&input, "s%d,message %d\n", i%sessions, i)
	}
	c := newCluster(t, slowly, input.String())
	c.runLarge(rows)
	testkit.Must(t, os.WriteFile(filepath.Join(c.dir, "app.qtype.yaml"), []byte(document), 0o600)) // for the local run
	status, out, errs := c.qtype("memory", "list", "app.qtype.yaml", "--format", "json")
	if status != 0 {
		t.Fatal(errs)
	}
	found := 0
	for line := range strings.Lines(out) {
		var s struct {
			Session  string
			Messages int
		}
		testkit.Must(t, json.Unmarshal([]byte(line), &s))
		if n, _ := strconv.Atoi(s.Session[1:]); s.Messages != 2*((rows-n+sessions-1)/sessions) {
			_, history, _ := c.qtype("memory", "history", "app.qtype.yaml", "-m", "talk", "-s", s.Session)
			t.Errorf("session %s has %d messages:\n%s", s.Session, s.Messages, history)
		}
		found++
	}
	if found != min(rows, sessions) {
		t.Errorf("%d sessions", found)
	}
	for n := 0; n < min(rows, sessions); n += 97 {
		var want strings.Builder
		for i := n; i < rows; i += sessions {
			fmt.Fprintf(&want, "user message %d\nassistant You sent: message %d\n", i, i)
		}
		if diff := cmp.Diff(want.String(), c.history(c.dir, fmt.Sprintf("s%d", n))); diff != "" {
			t.Errorf("session s%d:\n%s", n, diff)
		}
	}
	c.checkLocal("--ephemeral")
}

// runLarge runs the document with four workers, kills two of them, and kills and restarts the server.
func (c *cluster) runLarge(rows int) {
	t := c.t
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
		c.awaitRows(i*rows/4, result)
		logResident(t, fmt.Sprintf("after %d rows", i*rows/4), workers[2:])
		testkit.Must(t, kill())
		if i == 1 {
			testkit.Must(t, c.server.Restart())
		}
	}
	t.Log(<-result)
	logResident(t, "at the end", workers[2:])
}

// checkLocal compares the output with that of a local run.
func (c *cluster) checkLocal(flags ...string) {
	_, _, errs := c.qtype(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.csv"}, flags...)...)
	c.t.Log(errs)
	if c.read("got.csv") != c.read("want.csv") {
		c.t.Error("the output differs from that of a local run")
	}
}

// logResident logs the resident memory of workers, on Linux.
func logResident(t *testing.T, when string, workers []*exec.Cmd) {
	t.Helper()
	for _, w := range workers {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Process.Pid)); err == nil {
			t.Logf("%s, a worker: %s", when, regexp.MustCompile("Vm(RSS|HWM).*").FindAll(status, -1))
		}
	}
}

// awaitRows waits until the only run has finished a number of rows. It counts the outputs of
// chunks in the store: a command, or a query, takes longer than the run on a busy machine.
func (c *cluster) awaitRows(n int, ended <-chan string) {
	c.t.Helper()
	for {
		chunks, err := filepath.Glob(filepath.Join(c.dir, ".qtype", "blobs", "*", "out", "*", "*"))
		testkit.Must(c.t, err)
		if len(chunks)*durable.DefaultChunk > n {
			return
		}
		select {
		case text := <-ended:
			c.t.Fatalf("the run has ended: %s", text)
		case <-time.After(50 * time.Millisecond): // it polls
		}
	}
}
