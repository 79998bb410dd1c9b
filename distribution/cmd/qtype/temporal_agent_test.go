package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// desk is a flow with an agent, one of whose tools requires approval.
const desk = `id: desk
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "URL/v1", retry: {max_attempts: 1}}]
memories: [{id: talk, token_limit: 50000}]
tools:
  - {type: APITool, id: lookup, name: lookup, description: finds an order, endpoint: "URL/lookup", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
  - {type: APITool, id: refund, name: refund, description: refunds an order, endpoint: "URL/refund", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: Agent, id: assist, model: m, memory: talk, tools: [lookup, refund], approve: [refund], inputs: [text], outputs: [answer]}]
`

// deskServer is the model and the tools. It reports calls that are repeated although their
// result was used, and requests whose messages do not fit together.
type deskServer struct {
	mu     sync.Mutex
	calls  map[string]int // how often each call was made
	used   map[string]int // the rounds of a conversation whose results came back
	wrong  []string
	total  int
	pauses chan struct{} // one for each call of the model
}

// deskMessage is a message of a request.
type deskMessage struct {
	Role, Content string
	ToolCalls     []struct{ ID string } `json:"tool_calls"`
	ToolCallID    string                `json:"tool_call_id"`
}

func newDeskServer(t *testing.T) (d *deskServer, url string) {
	d = &deskServer{calls: map[string]int{}, used: map[string]int{}, pauses: make(chan struct{}, 1<<20)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", d.complete)
	mux.HandleFunc("POST /lookup", func(w http.ResponseWriter, r *http.Request) { d.tool(w, r, "lookup", 0) })
	mux.HandleFunc("POST /refund", func(w http.ResponseWriter, r *http.Request) { d.tool(w, r, "refund", 1) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return d, server.URL
}

// complete answers as the model: it calls lookup, then refund, then answers.
func (d *deskServer) complete(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []deskMessage }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	order, round, result := d.check(req.Messages)
	message, finish := map[string]any{"role": "assistant", "content": ""}, "tool_calls"
	call := func(name string) {
		id := fmt.Sprintf("call_%d", rand.Int64())
		if strings.HasPrefix(order, "b") {
			id = "" // some servers have no ids
		}
		message["tool_calls"] = []any{map[string]any{"id": id, "type": "function",
			"function": map[string]any{"name": name, "arguments": fmt.Sprintf(`{"order": %q}`, order)}}}
	}
	switch {
	case round == 0:
		call("lookup")
	case round == 1:
		call("refund")
	case strings.Contains(result, "rejected"):
		message["content"], finish = "refused "+order, "stop"
	default:
		message["content"], finish = "done "+order, "stop"
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, modeltest.JSON(map[string]any{
		"choices": []any{map[string]any{"finish_reason": finish, "message": message}},
		"usage":   map[string]any{"prompt_tokens": 3, "completion_tokens": 5},
	}))
	d.pauses <- struct{}{}
}

// check returns the order of the newest question, how many tools were called for it, and the
// last result.
func (d *deskServer) check(messages []deskMessage) (order string, round int, result string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := map[string]bool{}
	for i, m := range messages {
		switch m.Role {
		case "user":
			order, round = m.Content, 0
		case "assistant":
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
		case "tool":
			if !open[m.ToolCallID] {
				d.wrong = append(d.wrong, fmt.Sprintf("%s: message %d has the result of no call", order, i))
			}
			delete(open, m.ToolCallID)
			round, result = round+1, m.Content
		}
	}
	if len(open) > 0 {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: %d calls have no result", order, len(open)))
	}
	d.count(order, "model", round)
	d.used[order] = max(d.used[order], round)
	if last, ok := strings.CutSuffix(order, ".2"); ok && !slices.ContainsFunc(messages, func(m deskMessage) bool { return m.Content == "done "+last+".1" || m.Content == "refused "+last+".1" }) {
		d.wrong = append(d.wrong, order+": the first answer is not in the conversation")
	}
	return order, round, result
}

// count counts a call; the caller holds the lock.
func (d *deskServer) count(order, name string, round int) {
	d.calls[fmt.Sprintf("%s %s %d", order, name, round)]++
	d.total++
	if d.used[order] > round {
		d.wrong = append(d.wrong, fmt.Sprintf("%s: call %s of round %d was repeated after its result was used", order, name, round))
	}
}

// tool answers as a tool.
func (d *deskServer) tool(w http.ResponseWriter, r *http.Request, name string, round int) {
	var args struct{ Order string }
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	d.count(args.Order, name, round)
	d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"state": "paid"}`)
}

// answerAll answers the requests of the only run until ctx ends: each fifth order is rejected.
func (c *cluster) answerAll(ctx context.Context) {
	cfg := durable.Config{Address: c.server.Address(), Namespace: durable.DefaultNamespace}
	for ctx.Err() == nil {
		all, err := engine.List(ctx, cfg, durable.Filter{})
		if err != nil || len(all) == 0 {
			time.Sleep(100 * time.Millisecond) // it polls
			continue
		}
		run, err := engine.Show(ctx, cfg, all[0].ID)
		if err != nil || len(run.Waiting) == 0 {
			time.Sleep(100 * time.Millisecond) // it polls
			continue
		}
		var answers []durable.Answer
		for _, r := range run.Waiting {
			var args struct{ Order string }
			if err := json.Unmarshal(r.Arguments, &args); err != nil || r.Kind != durable.Approval || r.Tool != "refund" {
				c.t.Errorf("request %+v: %v", r, err)
			}
			answers = append(answers, durable.Answer{Number: r.Number, Approved: !isRejected(args.Order), Reason: ""})
		}
		_ = engine.Answer(ctx, cfg, all[0].ID, answers) // a worker may have been killed; it is tried again
	}
}

// isRejected reports whether the refund of an order such as a15.1 is rejected.
func isRejected(order string) bool {
	number, _, _ := strings.Cut(order[1:], ".")
	n, _ := strconv.Atoi(number)
	return n%5 == 4
}

// conversations returns the number of conversations: QTYPE_CONVERSATIONS, or 24.
func conversations(t *testing.T) int {
	given := os.Getenv("QTYPE_CONVERSATIONS")
	if given == "" {
		return 24
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTemporal_Agents: workers are killed at random while agents talk, call tools and wait for
// approvals. No call is repeated after its result was used, and no conversation is lost.
func TestTemporal_Agents(t *testing.T) {
	t.Parallel()
	const parallel = 4
	n := conversations(t)
	var input, want strings.Builder
	input.WriteString("session,text\n")
	row := 0
	for turn := 1; turn <= 2; turn++ {
		for i := range n {
			order := fmt.Sprintf("%c%d.%d", "ab"[i%2], i, turn)
			fmt.Fprintf(&input, "s%d,%s\n", i, order)
			answer := "done " + order
			if isRejected(order) {
				answer = "refused " + order
			}
			row++
			fmt.Fprintf(&want, `{"row":%d,"session":"s%d","answer":"%s","error":null}`+"\n", row, i, answer)
		}
	}
	d, url := newDeskServer(t)
	c := newCluster(t, strings.ReplaceAll(desk, "URL", url), input.String())
	workers := []*exec.Cmd{c.worker("--parallel", fmt.Sprint(parallel)), c.worker("--parallel", fmt.Sprint(parallel))}
	answering, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() { c.answerAll(answering) })
	defer background.Wait()
	defer stop()
	run := c.command(t.Context(), "run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--heartbeat", "2s")
	var errs bytes.Buffer
	run.Stderr = &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	killed := c.killAtRandom(d.pauses, workers, ended, n, parallel)
	stop()
	if run.ProcessState.ExitCode() != 0 {
		t.Fatalf("status %d: %s", run.ProcessState.ExitCode(), errs.String())
	}
	d.mu.Lock() // a call of a killed worker may still be handled
	defer d.mu.Unlock()
	for _, line := range d.wrong {
		t.Error(line)
	}
	if diff := cmp.Diff(want.String(), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	rejected := strings.Count(want.String(), "refused")
	minimum := 5*2*n - rejected // calls of the model and of tools
	t.Logf("%d conversations, %d workers killed: %d calls, %d of them repeated", n, killed, d.total, d.total-minimum)
	if d.total < minimum || d.total > minimum+killed*parallel {
		t.Errorf("%d calls, want %d and at most %d for each killed worker", d.total, minimum, parallel)
	}
	if history := c.history(c.dir, "s0"); strings.Count(history, "user ") != 2 || strings.Count(history, "tool ") != 4 || strings.Count(history, "assistant done") != 2 {
		t.Errorf("the history of session s0:\n%s", history)
	}
}

// killAtRandom kills a worker after random numbers of calls, and starts another one, until ended
// receives.
func (c *cluster) killAtRandom(calls <-chan struct{}, workers []*exec.Cmd, ended chan error, n, parallel int) (killed int) {
	next := 0
	for {
		select {
		case <-ended:
			return killed
		case <-calls:
		}
		if next--; next >= 0 {
			continue
		}
		next = n/2 + rand.IntN(n)
		at := rand.IntN(len(workers))
		if err := workers[at].Process.Kill(); err != nil {
			c.t.Fatal(err)
		}
		workers[at] = c.worker("--parallel", fmt.Sprint(parallel))
		killed++
	}
}
