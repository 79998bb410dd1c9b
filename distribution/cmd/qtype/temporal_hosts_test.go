package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// hostsDocument is a flow whose memory is on a server.
const hostsDocument = `id: hosts
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "http://MODEL/v1", retry: {max_attempts: 1}}]
stores: [{id: db, type: postgres, url: "STORE"}]
memories: [{id: talk, policy: unbounded, store: db}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`

// network is a cluster whose workers and the program of the run are on separate hosts: 0 and 1 have
// workers, 2 has the run.
type network struct {
	*cluster
	hosts *servertest.Hosts
	env   []string
	calls *modelCalls
}

// modelCalls counts the calls of the model.
type modelCalls struct {
	mu    sync.Mutex
	texts map[string]int
	total int
	more  chan int // receives the total after each call
}

func newNetwork(t *testing.T, rows string) *network {
	t.Helper()
	hosts := servertest.NeedHosts(t, 3)
	db, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, db.Close()) })
	n := &network{hosts: hosts, calls: &modelCalls{texts: map[string]int{}, more: make(chan int, 1<<16)}}
	model := httptest.NewServer(modeltest.OpenAI(n.calls.answer))
	t.Cleanup(model.Close)
	forward := func(target string) string {
		address, err := hosts.Forward(target)
		testkit.Must(t, err)
		return address
	}
	document := strings.ReplaceAll(hostsDocument, "MODEL", forward(model.Listener.Addr().String()))
	n.cluster = newCluster(t, strings.ReplaceAll(document, "STORE", strings.ReplaceAll(db.URL(), db.Address(), forward(db.Address()))), rows)
	n.env = append(os.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*", "TEMPORAL_ADDRESS="+forward(n.server.Address()))
	return n
}

// answer is the model.
func (m *modelCalls) answer(messages []modeltest.Message) (text string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := messages[len(messages)-1].Content
	m.texts[last]++
	m.total++
	m.more <- m.total
	return "answer to " + last, 0
}

// on starts the program on a host.
func (n *network) on(host int, args ...string) (cmd *exec.Cmd, errs *bytes.Buffer) {
	n.t.Helper()
	program, err := exec.LookPath("qtype")
	testkit.Must(n.t, err)
	cmd, errs = n.hosts.Command(context.WithoutCancel(n.t.Context()), host, program, args...), &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stderr = n.dir, n.env, errs
	testkit.Must(n.t, cmd.Start())
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd, errs
}

// awaitCalls waits until the model was called a number of times, or until stop receives.
func (n *network) awaitCalls(number int, stop <-chan time.Time) {
	for {
		select {
		case total := <-n.calls.more:
			if total >= number {
				return
			}
		case <-stop:
			return
		}
	}
}

// TestTemporal_Partition: one of two hosts with workers is removed from the network in the middle of a run, so that it
// reaches neither Temporal nor the store nor the model, and returns. Each row is in the output once, and each turn is in
// its conversation once; only the calls that were open at that moment are repeated.
func TestTemporal_Partition(t *testing.T) {
	const sessions, turns, parallel = 40, 3, 2
	var input, want strings.Builder
	input.WriteString("session,text\n")
	for turn := range turns {
		for s := range sessions {
			fmt.Fprintf(&input, "s%d,s%d t%d\n", s, s, turn)
			fmt.Fprintf(&want, `{"row":%d,"session":"s%d","answer":"answer to s%d t%d","error":null}`+"\n", turn*sessions+s+1, s, s, turn)
		}
	}
	n := newNetwork(t, input.String())
	for host := range 2 {
		n.on(host, "worker", "app.qtype.yaml", "--parallel", fmt.Sprint(parallel))
	}
	run, errs := n.on(2, "run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--heartbeat", "2s", "--chunk", "4")
	n.awaitCalls(sessions/2, nil)
	testkit.Must(t, n.hosts.Cut(0))
	n.awaitCalls(sessions*turns*3/4, time.After(20*time.Second)) // chunks of the host wait for the end of its heartbeats
	testkit.Must(t, n.hosts.Heal(0))
	if err := run.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	if diff := cmp.Diff(want.String(), n.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	n.calls.mu.Lock()
	total := n.calls.total
	n.calls.mu.Unlock()
	t.Logf("%d rows, %d calls of the model", sessions*turns, total)
	if most := sessions*turns + parallel*4; total < sessions*turns || total > most {
		t.Errorf("%d calls of the model, want at most %d", total, most)
	}
	for s := range sessions {
		var history strings.Builder
		for turn := range turns {
			fmt.Fprintf(&history, "user s%d t%d\nassistant answer to s%d t%d\n", s, turn, s, turn)
		}
		if diff := cmp.Diff(history.String(), n.history(n.dir, fmt.Sprintf("s%d", s))); diff != "" {
			t.Errorf("session %d: %s", s, diff)
		}
	}
}
