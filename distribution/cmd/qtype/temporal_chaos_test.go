package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_Chaos: workers are killed, stopped and frozen, and Temporal and the store are killed and restarted,
// while rows of conversations run. The output and the conversations are those of a local run. QTYPE_CHAOS is the
// number of rows: make chaos.
func TestTemporal_Chaos(t *testing.T) {
	rows, err := strconv.Atoi(cmp.Or(os.Getenv("QTYPE_CHAOS"), "0"))
	if testkit.Must(t, err); rows == 0 {
		t.Skip("SKIPPED: set QTYPE_CHAOS to a number of rows")
	}
	for _, store := range []struct {
		name string
		open func() (*servertest.Server, error) // nil for a file
	}{
		{"sqlite", nil},
		{"postgres", func() (*servertest.Server, error) { return servertest.Postgres() }},
		{"redis", func() (*servertest.Server, error) {
			return servertest.Redis("--appendonly", "yes", "--appendfsync", "always")
		}},
	} {
		t.Run(store.name, func(t *testing.T) { chaos(t, rows, store.open) })
	}
}

// figures are the tokens in the summary of a run.
var figures = regexp.MustCompile(`tokens ([\d,]+ in, [\d,]+ out)`)

// chaos runs rows on four workers, with faults, and prints what differs from a local run.
func chaos(t *testing.T, rows int, open func() (*servertest.Server, error)) {
	sessions := max(rows/20, 1)
	var mu sync.Mutex
	calls, all := 0, make(chan struct{}, 4*rows)
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		mu.Lock()
		calls++
		mu.Unlock()
		all <- struct{}{}
		time.Sleep(10 * time.Millisecond) // as long as a call takes
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	var input strings.Builder
	input.WriteString("session,text\n")
	for i := range rows {
		fmt.Fprintf(&input, "s%d,question %d\n", i%sessions, i)
	}
	c := newCluster(t, fmt.Sprintf(talks, model.URL), input.String())
	servers, flags := []*servertest.Server{c.server}, []string(nil)
	if open != nil {
		db, err := open()
		servertest.Need(t, err)
		t.Cleanup(func() { testkit.Must(t, db.Close()) })
		servers, flags = append(servers, db), []string{"--store", db.URL()}
	}
	var workers []*exec.Cmd
	for range 4 {
		workers = append(workers, c.worker(flags...))
	}
	began, faults := time.Now(), 0
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "got.jsonl", "--engine", "temporal", "--heartbeat", "5s"}
	result := c.begin(append(run, flags...)...)
	got := ""
	for next := rows / 20; got == ""; {
		select {
		case got = <-result:
			continue
		case <-all:
		}
		if next--; next > 0 {
			continue
		}
		next = rows / 20
		c.fault(faults, workers, servers, flags)
		faults++
	}
	repeated := calls - rows
	status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.jsonl", "--store", "memory:")
	if status != 0 || !strings.HasPrefix(got, "0\n") {
		t.Fatalf("on workers: %s; local: %s", got, errs)
	}
	exact := 0
	for n := range sessions {
		if c.isExact(n, rows, sessions, flags) {
			exact++
		}
	}
	tokens, want := figures.FindString(got), figures.FindString(errs)
	isEqual := c.read("got.jsonl") == c.read("want.jsonl")
	fmt.Printf("%s: %d rows, %d faults in %.0f s: bytes equal %t, histories exact %d of %d, calls repeated %d, tokens equal %t\n",
		t.Name(), rows, faults, time.Since(began).Seconds(), isEqual, exact, sessions, repeated, tokens == want)
	if !isEqual || exact != sessions || tokens != want {
		t.Errorf("tokens %s, want %s", tokens, want)
	}
}

// fault lets one of the workers or servers fail, and replaces it.
func (c *cluster) fault(number int, workers []*exec.Cmd, servers []*servertest.Server, flags []string) {
	at, server := rand.IntN(len(workers)), servers[number%len(servers)]
	switch w := workers[at]; number % 4 {
	case 0:
		testkit.Must(c.t, w.Process.Kill())
		workers[at] = c.worker(flags...)
	case 1:
		testkit.Must(c.t, w.Process.Signal(syscall.SIGTERM))
		workers[at] = c.worker(flags...)
	case 2: // longer than its heartbeat
		testkit.Must(c.t, w.Process.Signal(syscall.SIGSTOP))
		time.AfterFunc(8*time.Second, func() { _ = w.Process.Signal(syscall.SIGCONT) })
	case 3:
		testkit.Must(c.t, server.Kill())
		testkit.Must(c.t, server.Restart())
	}
}

// isExact reports whether a session has each of its turns once, in order.
func (c *cluster) isExact(session, rows, sessions int, flags []string) bool {
	var want strings.Builder
	for i := session; i < rows; i += sessions {
		fmt.Fprintf(&want, "user question %d\nassistant answer to question %d\n", i, i)
	}
	return c.history(c.dir, fmt.Sprint("s", session), flags...) == want.String()
}
