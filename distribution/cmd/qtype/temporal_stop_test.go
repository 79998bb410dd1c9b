package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_StoppedWorker: a worker is stopped during the turn of a row, which another worker
// repeats. The history has the turn once, and no failed one.
func TestTemporal_StoppedWorker(t *testing.T) {
	t.Parallel()
	asked, hold := make(chan struct{}, 2), make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		asked <- struct{}{}
		<-hold
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\ns0,hello\n")
	first := c.worker("--drain-timeout", "0s")
	result := c.start("--heartbeat", "2s")
	<-asked
	testkit.Must(t, first.Process.Signal(os.Interrupt))
	c.worker()
	<-asked
	close(hold)
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	_, out, errs := c.qtype("memory", "history", "app.qtype.yaml", "-m", "talk", "-s", "s0", "--format", "json")
	if n := strings.Count(out, "\n"); n != 2 || strings.Contains(out, "failed") {
		t.Errorf("%d messages: %s%s", n, out, errs)
	}
}

// TestTemporal_Outage: rows wait for a provider that is away, and a worker that is replaced meanwhile loses none.
func TestTemporal_Outage(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	var isBack atomic.Bool
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		if !isBack.Load() {
			asked <- struct{}{}
			return "", http.StatusServiceUnavailable
		}
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\na,2\na,3\na,4\nb,5\n")
	first := c.worker("--drain-timeout", "0s")
	result := c.start()
	<-asked
	<-asked
	testkit.Must(t, first.Process.Signal(syscall.SIGTERM))
	c.worker()
	testkit.Must(t, first.Wait())
	for len(asked) > 0 {
		<-asked
	}
	<-asked // of the second worker
	isBack.Store(true)
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	want := ""
	for i, session := range "aaaab" {
		want += fmt.Sprintf("{\"row\":%d,\"session\":\"%c\",\"answer\":\"answer to %d\",\"error\":null}\n", i+1, session, i+1)
	}
	if diff := cmp.Diff(want, c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
}

// pays is a flow that calls a tool.
const pays = `id: pays
tools:
  - {type: APITool, id: pay, name: pay, description: Pays., endpoint: "%s/pay", method: POST, allow_private: true, idempotency_header: Idempotency-Key, inputs: [{id: order, type: text}], outputs: [{id: paid, type: text}]}
flows:
  - id: main
    variables: [{id: order, type: text}, {id: paid, type: text}]
    inputs: [order]
    outputs: [paid]
    steps: [{type: InvokeTool, id: call, tool: pay, input_bindings: {order: order}, output_bindings: {paid: paid}}]
`

// TestTemporal_RepeatedCalls: a worker is killed while it waits for a tool. The call is made again with the key of the
// first one, and reported; those with results are not.
func TestTemporal_RepeatedCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string][]string{}
	asked, end := make(chan struct{}), make(chan struct{})
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Order string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		keys[body.Order] = append(keys[body.Order], r.Header.Get("Idempotency-Key"))
		isFirst := len(keys[body.Order]) == 1
		mu.Unlock()
		if body.Order == "two" && isFirst {
			close(asked)
			<-end
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"paid": "%s is paid"}`, body.Order)
	}))
	t.Cleanup(shop.Close)
	t.Cleanup(func() { close(end) })
	c := newCluster(t, fmt.Sprintf(pays, shop.URL), "order\none\ntwo\nthree\n")
	worker := c.worker()
	result := c.start("--heartbeat", "2s")
	<-asked
	testkit.Must(t, worker.Process.Kill())
	c.worker()
	if got := <-result; !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "made again after the end of a worker 1 × tool pay\n") {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	if two := keys["two"]; len(keys["one"]) != 1 || len(two) != 2 || two[0] != two[1] || two[0] == "" || len(keys["three"]) != 1 {
		t.Errorf("the calls had the keys %q", keys)
	}
	_, out, _ := c.qtype("runs", "list", "--engine", "temporal", "--format", "json")
	var run struct{ ID string }
	testkit.Must(t, json.Unmarshal([]byte(out), &run))
	if _, out, errs := c.qtype("runs", "show", run.ID); !strings.Contains(out, "3 rows, 0 failed, 1 call repeated") {
		t.Error(out, errs)
	}
}

// sells is a flow whose rows call a tool after a turn of a memory.
const sells = `id: sells
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%[1]s/v1", prices: {input: 1000, output: 2000}}]
memories: [{id: talk, policy: message_window, max_messages: 2}]
tools: [{type: APITool, id: pay, name: pay, description: Pays., endpoint: "%[1]s/pay", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: paid, type: text}]}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}, {id: paid, type: text}]
    inputs: [text]
    outputs: [answer, paid]
    steps:
      - {type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}
      - {type: InvokeTool, id: call, tool: pay, input_bindings: {order: text}, output_bindings: {paid: paid}}
`

// TestTemporal_Figures: a worker is killed after the turns of several rows of a session, before the last of them is finished. The figures
// of the summary are those of a local run.
func TestTemporal_Figures(t *testing.T) {
	t.Parallel()
	asked, end := make(chan struct{}, 1), make(chan struct{})
	var isKilled atomic.Bool
	answers := modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		return "answer to " + messages[len(messages)-1].Content, 0
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pay" {
			answers(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "last") && !isKilled.Swap(true) {
			asked <- struct{}{}
			<-end
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"paid": "yes"}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	c := newCluster(t, fmt.Sprintf(sells, server.URL), "session,text\n"+strings.Repeat("a,one\n", 12)+"a,last\na,next\n")
	figures := func(stderr string) string {
		for line := range strings.Lines(stderr) {
			if strings.HasPrefix(line, "tokens ") {
				return line
			}
		}
		return "none in " + stderr
	}
	worker := c.worker()
	result := c.start("--heartbeat", "2s")
	<-asked
	testkit.Must(t, worker.Process.Kill())
	c.worker()
	got := figures(<-result)
	_, _, stderr := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "local.jsonl", "--store", "memory:")
	if want := figures(stderr); got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// TestTemporal_LethalRow: the worker ends each time that it runs a row. The row fails, and the others of its chunk do not.
func TestTemporal_LethalRow(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	end := make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		text := messages[len(messages)-1].Content
		if text == "lethal" {
			asked <- struct{}{}
			<-end
		}
		return "answer to " + text, 0
	}))
	t.Cleanup(model.Close)
	t.Cleanup(func() { close(end) })
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\na,lethal\na,3\n")
	worker := c.worker()
	result := c.start("--heartbeat", "3s")
	got, killed := "", 0
	for got == "" {
		select {
		case <-asked:
			killed++
			testkit.Must(t, worker.Process.Kill())
			worker = c.worker()
		case got = <-result:
		}
	}
	if !strings.HasPrefix(got, "1\n") || !strings.Contains(got, "3 rows: 2 done, 1 failed") || killed > 4 {
		t.Errorf("%d workers were killed: %s", killed, got)
	}
	want := []string{`"answer to 1"`, "its worker ended each time that it ran", `"answer to 3"`}
	for i, line := range strings.Split(strings.TrimSpace(c.read("out.jsonl")), "\n") {
		if i >= len(want) || !strings.Contains(line, want[i]) {
			t.Errorf("row %d: %s", i+1, line)
		}
	}
}

// TestTemporal_RollingRestarts: each worker is replaced by another one while rows run. No call is repeated. (A chunk that
// Temporal assigns to a worker in the moment of its end is assigned again after the time of a heartbeat.)
func TestTemporal_RollingRestarts(t *testing.T) {
	t.Parallel()
	rows, restarts := 300, 5
	if n, err := strconv.Atoi(os.Getenv("QTYPE_RESTARTS")); err == nil { // 20 restarts during 20,000 rows
		rows, restarts = n*1000, n
	}
	asked := make(chan struct{}, rows+restarts)
	var mu sync.Mutex
	calls := map[string]int{}
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		text := messages[len(messages)-1].Content
		mu.Lock()
		calls[text]++
		mu.Unlock()
		asked <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		return "answer to " + text, 0
	}))
	t.Cleanup(model.Close)
	var input, want strings.Builder
	input.WriteString("session,text\n")
	for i := 1; i <= rows; i++ {
		fmt.Fprintf(&input, "s%d,%d\n", i%50, i)
		fmt.Fprintf(&want, `{"row":%d,"session":"s%d","answer":"answer to %d","error":null}`+"\n", i, i%50, i)
	}
	c := newCluster(t, fmt.Sprintf(talks, model.URL), input.String())
	workers := []*exec.Cmd{c.worker(), c.worker()}
	result := c.start("--chunk", "10")
	for i := range restarts {
		for range rows / (restarts + 1) {
			<-asked
		}
		workers = append(workers, c.worker())
		testkit.Must(t, workers[i].Process.Signal(syscall.SIGTERM))
	}
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	if diff := cmp.Diff(want.String(), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := len(calls); n != rows {
		t.Errorf("%d questions, want %d", n, rows)
	}
	for text, n := range calls {
		if n != 1 {
			t.Errorf("question %s was asked %d times", text, n)
		}
	}
}
