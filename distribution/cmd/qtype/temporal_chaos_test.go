package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_Chaos: workers are killed, stopped and frozen, Temporal and the store are killed and restarted, and the networks
// between them are cut and slow, while rows of conversations run. The output, the conversations and the tokens are those of a local
// run. QTYPE_CHAOS is the number of rows: make chaos.
func TestTemporal_Chaos(t *testing.T) {
	rows, err := strconv.Atoi(cmp.Or(os.Getenv("QTYPE_CHAOS"), "0"))
	if testkit.Must(t, err); rows == 0 {
		t.Skip("SKIPPED: set QTYPE_CHAOS to a number of rows")
	}
	want := &chaosWant{}
	for _, store := range []chaosStore{
		{name: "sqlite"},
		{"postgres", func() (*servertest.Server, error) { return servertest.Postgres() }, (*servertest.Server).URL},
		{"redis", func() (*servertest.Server, error) {
			return servertest.Redis("--appendonly", "yes", "--appendfsync", "always")
		}, func(s *servertest.Server) string { return "redis://" + s.Address() }},
	} {
		t.Run(store.name, func(t *testing.T) { chaos(t, rows, store, want) })
	}
}

// chaosWant is what a local run makes of the rows, which takes longer than that on workers: it is the same for each store.
type chaosWant struct{ output, figures string }

// chaosStore is a store of the memory.
type chaosStore struct {
	name string
	open func() (*servertest.Server, error) // nil for a file
	url  func(*servertest.Server) string
}

// The faults of a run: four of each kind. A fault that ends lasts longer than a heartbeat.
const (
	chaosWorkers   = 4
	chaosParallel  = 4
	chaosKinds     = 6
	chaosFaults    = 4 * chaosKinds
	chaosHeartbeat = 5 * time.Second
	chaosTime      = 8 * time.Second
)

// chaosRun is a cluster with faults.
type chaosRun struct {
	*cluster
	workers []*exec.Cmd
	flags   []string // of workers
	servers []*servertest.Server
	links   []*link // of workers to the servers

	disturbed sync.WaitGroup // until the links work again: a worker that starts then would end
}

// figures are the tokens, sessions and flushes in the summary of a run, and repeatedCalls the number of calls made again.
var (
	figures       = regexp.MustCompile(`tokens .*`)
	repeatedCalls = regexp.MustCompile(`made again after the end of a worker ([\d,]+) ×`)
)

// chaos runs rows on workers, with faults, and prints what differs from a local run.
func chaos(t *testing.T, rows int, store chaosStore, want *chaosWant) {
	sessions := max(rows/20, 1)
	var calls atomic.Int64
	called := make(chan struct{}, 4*rows)
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		calls.Add(1)
		called <- struct{}{}
		time.Sleep(10 * time.Millisecond) // as long as a call takes
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	var input strings.Builder
	input.WriteString("session,text\n")
	for i := range rows {
		fmt.Fprintf(&input, "s%d,question %d\n", i%sessions, i)
	}
	c := &chaosRun{cluster: newCluster(t, fmt.Sprintf(talks, model.URL), input.String())}
	direct := c.use(store)
	for range chaosWorkers {
		c.workers = append(c.workers, c.startWorker())
	}
	began, faults, got := time.Now(), 0, ""
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "got.jsonl", "--engine", "temporal"}
	result := c.begin(append(run, "--heartbeat", chaosHeartbeat.String())...)
	for next := rows / chaosFaults; got == ""; {
		select {
		case got = <-result:
		case <-called:
			if next--; next <= 0 {
				next = rows / chaosFaults
				c.fault(faults)
				faults++
			}
		}
	}
	c.disturbed.Wait()
	took, repeated := time.Since(began), calls.Load()-int64(rows)
	if !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	if want.output == "" {
		status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.jsonl", "--store", "memory:")
		if status != 0 {
			t.Fatal(errs)
		}
		want.output, want.figures = c.read("want.jsonl"), figures.FindString(errs)
	}
	exact := c.exact(rows, sessions, direct)
	used, isEqual := figures.FindString(got), c.read("got.jsonl") == want.output
	reported := append(repeatedCalls.FindStringSubmatch(got), "", "0")[1]
	fmt.Printf("%s: %d rows, %d faults in %.0f s: bytes equal %t, histories exact %d of %d, ", t.Name(), rows, faults, took.Seconds(), isEqual, exact, sessions)
	fmt.Printf("calls repeated %d (%s reported), tokens equal %t\n", repeated, reported, used == want.figures)
	if !isEqual || exact != sessions || used != want.figures {
		t.Errorf("%s, want %s", used, want.figures)
	}
	if most := int64(faults * chaosWorkers * chaosParallel); repeated > most { // those that a fault interrupts
		t.Errorf("%d calls were repeated by %d faults", repeated, faults)
	}
}

// use connects the workers with Temporal and a store by links, and returns flags for the store without a link.
func (c *chaosRun) use(store chaosStore) (direct []string) {
	c.servers = []*servertest.Server{c.server}
	if store.open != nil {
		db, err := store.open()
		servertest.Need(c.t, err)
		c.t.Cleanup(func() { testkit.Must(c.t, db.Close()) })
		c.servers = append(c.servers, db)
	}
	for _, s := range c.servers {
		c.links = append(c.links, newLink(c.t, s.Address()))
	}
	if store.open == nil {
		return nil
	}
	db := c.servers[1]
	c.flags = []string{"--store", strings.ReplaceAll(store.url(db), db.Address(), c.links[1].address)}
	return []string{"--store", store.url(db)}
}

// startWorker starts a worker that reaches the servers by links.
func (c *chaosRun) startWorker() *exec.Cmd {
	linked := *c.cluster
	linked.address = c.links[0].address
	return linked.worker(append([]string{"--parallel", strconv.Itoa(chaosParallel)}, c.flags...)...)
}

// fault lets one of the workers, servers or links fail, and replaces it.
func (c *chaosRun) fault(number int) {
	c.disturbed.Wait()
	at := rand.IntN(len(c.workers))
	worker, server, link := c.workers[at], c.servers[number/chaosKinds%len(c.servers)], c.links[number/chaosKinds%len(c.links)]
	switch number % chaosKinds {
	case 0:
		testkit.Must(c.t, worker.Process.Kill())
		c.workers[at] = c.startWorker()
	case 1:
		testkit.Must(c.t, worker.Process.Signal(syscall.SIGTERM))
		c.workers[at] = c.startWorker()
	case 2:
		testkit.Must(c.t, worker.Process.Signal(syscall.SIGSTOP))
		time.AfterFunc(chaosTime, func() { _ = worker.Process.Signal(syscall.SIGCONT) })
	case 3:
		testkit.Must(c.t, server.Kill())
		testkit.Must(c.t, server.Restart())
	case 4:
		link.cut(true)
		c.afterwards(func() { link.cut(false) })
	case 5:
		link.delay.Store(int64(time.Second))
		c.afterwards(func() { link.delay.Store(0) })
	}
}

// afterwards ends a fault of a link.
func (c *chaosRun) afterwards(end func()) {
	c.disturbed.Add(1)
	time.AfterFunc(chaosTime, func() {
		end()
		c.disturbed.Done()
	})
}

// exact returns how many sessions have each of their turns once, in order.
func (c *chaosRun) exact(rows, sessions int, flags []string) (n int) {
	status, out, errs := c.qtype(append([]string{"memory", "export", "app.qtype.yaml", "-m", "talk", "--full", "--all"}, flags...)...)
	if status != 0 {
		c.t.Fatal(errs)
	}
	have, session := map[string]string{}, ""
	for line := range strings.Lines(out) {
		var m struct{ Op, Session, Role, Content, Status string }
		testkit.Must(c.t, json.Unmarshal([]byte(line), &m))
		switch {
		case m.Op == "session":
			session = m.Session
		case m.Role != "":
			have[session] += fmt.Sprintln(m.Role, m.Content, m.Status)
		}
	}
	for s := range sessions {
		var want strings.Builder
		for i := s; i < rows; i += sessions {
			fmt.Fprintf(&want, "user question %d \nassistant answer to question %d \n", i, i)
		}
		if have[fmt.Sprint("s", s)] == want.String() {
			n++
		} else {
			c.t.Logf("session s%d: %s", s, have[fmt.Sprint("s", s)])
		}
	}
	return n
}
