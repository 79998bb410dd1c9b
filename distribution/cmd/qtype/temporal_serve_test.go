package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// served is the document of a server whose rows run on workers: a conversation, an agent that needs approvals,
// and a flow that only computes.
const served = `id: served
models:
  - {type: Model, id: say, provider: openai, model_id: gpt-6-luna, base_url: "URL/say/v1", retry: {max_attempts: 1}}
  - {type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "URL/v1", retry: {max_attempts: 1}}
memories: [{id: talk, token_limit: 50000}]
tools:
  - {type: APITool, id: lookup, name: lookup, description: finds an order, endpoint: "URL/lookup", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
  - {type: APITool, id: refund, name: refund, description: refunds an order, endpoint: "URL/refund", method: POST, allow_private: true, inputs: [{id: order, type: text}], outputs: [{id: state, type: text}]}
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: say, memory: talk, inputs: [message], outputs: [answer]}]
  - id: desk
    variables: [{id: text, type: text}, {id: result, type: text}]
    inputs: [text]
    outputs: [result]
    steps: [{type: Agent, id: assist, model: m, memory: talk, tools: [lookup, refund], approve: [refund], inputs: [text], outputs: [result]}]
  - id: sum
    description: adds one
    variables: [{id: n, type: int}, {id: more, type: int}]
    inputs: [n]
    outputs: [more]
    steps: [{type: Transform, id: add, set: {more: 'n + 1'}}]
  - id: together
    variables: [{id: text, type: text}, {id: answer, type: text}, {id: answers, type: 'list[text]'}]
    inputs: [text]
    outputs: [answers]
    steps:
      - {type: PromptTemplate, id: ask, template: 'answer to {text}', inputs: [text], outputs: [answer]}
      - {type: Collect, id: all, inputs: [answer], outputs: [answers]}
`

// servedModel is the model of served. An answer of chat has two parts; the second one is sent when release
// receives, if hold is set.
type servedModel struct {
	desk    *deskServer
	mu      sync.Mutex
	texts   []string // the messages of each request of chat
	turns   int      // the requests of affinity that have no answer yet
	most    int      // the most of them at any time
	hold    bool
	release chan struct{}
}

// streamOf writes a chunk of a stream.
func streamOf(w io.Writer, delta map[string]any, finish any) {
	raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	fmt.Fprintf(w, "data: %s\n\n", raw)
	w.(http.Flusher).Flush()
}

// say answers a request of chat.
func (m *servedModel) say(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []deskMessage
		Stream   bool
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var all []string
	for _, message := range req.Messages {
		all = append(all, message.Role+" "+message.Content)
	}
	m.mu.Lock()
	m.texts = append(m.texts, strings.Join(all, "|"))
	hold := m.hold
	m.mu.Unlock()
	last := req.Messages[len(req.Messages)-1].Content
	if strings.HasPrefix(last, "turn ") {
		m.mu.Lock()
		m.turns++
		m.most = max(m.most, m.turns)
		m.mu.Unlock()
		time.Sleep(50 * time.Millisecond) // so that another turn would come meanwhile
		m.mu.Lock()
		m.turns--
		m.mu.Unlock()
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`, "answer to "+last)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	streamOf(w, map[string]any{"role": "assistant", "content": "answer to "}, nil)
	if hold {
		select {
		case <-m.release:
		case <-r.Context().Done():
			return
		}
	}
	streamOf(w, map[string]any{"content": last}, nil)
	streamOf(w, map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// complete lets the model of the desk stream.
func (m *servedModel) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct{ Stream bool }
	if json.Unmarshal(body, &req) != nil || !req.Stream {
		m.desk.complete(w, r)
		return
	}
	whole := httptest.NewRecorder()
	m.desk.complete(whole, r)
	var answer struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      map[string]any
		}
	}
	if err := json.Unmarshal(whole.Body.Bytes(), &answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	choice := answer.Choices[0]
	calls, _ := choice.Message["tool_calls"].([]any)
	for i, call := range calls {
		call.(map[string]any)["index"] = i
	}
	w.Header().Set("Content-Type", "text/event-stream")
	streamOf(w, choice.Message, choice.FinishReason)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// office is a cluster with servers.
type office struct {
	*cluster
	model   *servedModel
	servers []*servertest.Replica
	workers []*exec.Cmd
}

func newOffice(t *testing.T, servers, workers int) *office {
	t.Helper()
	m := &servedModel{release: make(chan struct{}), desk: &deskServer{calls: map[string]int{}, used: map[string]int{}, pauses: make(chan struct{}, 1<<20)}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /say/v1/chat/completions", m.say)
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	mux.HandleFunc("POST /lookup", func(w http.ResponseWriter, r *http.Request) { m.desk.tool(w, r, "lookup", 0) })
	mux.HandleFunc("POST /refund", func(w http.ResponseWriter, r *http.Request) { m.desk.tool(w, r, "refund", 1) })
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	o := &office{cluster: newCluster(t, strings.ReplaceAll(served, "URL", site.URL), ""), model: m}
	t.Setenv("OPENAI_API_KEY", "x")
	t.Setenv("NO_PROXY", "*")
	t.Setenv("TEMPORAL_ADDRESS", o.server.Address())
	for range workers {
		o.workers = append(o.workers, o.worker())
	}
	for range servers {
		o.servers = append(o.servers, servertest.Serve(t, o.dir, "--engine", "temporal", "--heartbeat", "2s", "--log-level", "error"))
	}
	return o
}

// call sends a request and returns the answer.
func (o *office) call(server int, method, path, body string, headers ...string) (status int, answer string) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, o.servers[server].URL+path, strings.NewReader(body))
	testkit.Must(o.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(o.t, err)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	testkit.Must(o.t, err)
	return resp.StatusCode, string(raw)
}

// want sends a request whose answer must have a text.
func (o *office) want(server int, method, path, body, text string, headers ...string) string {
	o.t.Helper()
	status, answer := o.call(server, method, path, body, headers...)
	if status >= 300 || !strings.Contains(answer, text) {
		o.t.Fatalf("%s %s: status %d, want %q in %s", method, path, status, text, answer)
	}
	return answer
}

// runState is the answer to GET /runs/{run}.
type runState struct {
	Run, ID string
	Status  string
	Pending []struct{ ID, Tool string }
	Outputs []map[string]any
}

// await reads a run until it has a status.
func (o *office) await(server int, run, status string) (s runState) {
	o.t.Helper()
	for {
		_, answer := o.call(server, http.MethodGet, "/runs/"+run, "")
		s = runState{}
		testkit.Must(o.t, json.Unmarshal([]byte(answer), &s))
		if s.Status == status {
			return s
		}
		if s.Status != "running" && s.Status != "waiting" {
			o.t.Fatalf("the run is %s, want %s: %s", s.Status, status, answer)
		}
		time.Sleep(50 * time.Millisecond) // it polls
	}
}

// begin starts a run of the desk that goes on without the client, and returns its id.
func (o *office) begin(server int, order string) string {
	o.t.Helper()
	answer := o.want(server, http.MethodPost, "/flows/desk", fmt.Sprintf(`{"text":%q}`, order), "", "Prefer", "respond-async", "X-Session-Id", order)
	var s runState
	testkit.Must(o.t, json.Unmarshal([]byte(answer), &s))
	if s.Run == "" {
		s.Run = s.ID
	}
	return s.Run
}

// TestTemporal_Serve: the requests of two servers run on workers, by each protocol; answers and cancellations may
// come by either server; a worker and a server that are killed lose nothing, and no call is repeated
// after its result was used.
func TestTemporal_Serve(t *testing.T) {
	o := newOffice(t, 2, 2)
	o.want(0, http.MethodPost, "/flows/sum", `{"n": 41}`, `"more":42`)
	o.want(1, http.MethodPost, "/flows/sum", `[{"n": 1}, {"n": 2}, {"n": 3}]`, `"more":4`)
	o.want(0, http.MethodPost, "/flows/together", `[{"text": "a"}, {"text": "b"}]`, `"answers":["answer to a","answer to b"]`)
	o.want(0, http.MethodPost, "/flows/chat", `{"message": "one"}`, "answer to one", "X-Session-Id", "s")
	o.want(1, http.MethodPost, "/flows/chat", `{"message": "two"}`, "answer to two", "X-Session-Id", "s")
	o.want(1, http.MethodPost, "/v1/chat/completions", `{"model": "chat", "messages": [{"role": "user", "content": "three"}]}`, "answer to three")
	if got := o.model.texts[1]; got != "user one|assistant answer to one|user two" {
		t.Errorf("the second turn got %q", got)
	}
	if all, err := engine.List(t.Context(), durable.Config{Address: o.server.Address(), Namespace: durable.DefaultNamespace}, durable.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("qtype runs list has the requests of servers: %v, %v", all, err)
	}
	t.Run("stream", o.streams)
	t.Run("mcp", o.mcp)
	t.Run("affinity", o.affinity)
	t.Run("cancel", o.cancels)
	t.Run("answers", o.answers)
}

// streams: the client has the first part of an answer before the model has given the second one.
func (o *office) streams(t *testing.T) {
	o.model.mu.Lock()
	o.model.hold = true
	o.model.mu.Unlock()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.servers[0].URL+"/v1/chat/completions",
		strings.NewReader(`{"model": "chat", "stream": true, "messages": [{"role": "user", "content": "four"}]}`))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	lines := bufio.NewScanner(resp.Body)
	held := true
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if !ok || json.Unmarshal([]byte(data), &chunk) != nil || len(chunk.Choices) == 0 {
			continue
		}
		text.WriteString(chunk.Choices[0].Delta.Content)
		if held && text.String() == "answer to " {
			held = false
			close(o.model.release)
		}
	}
	o.model.mu.Lock()
	o.model.hold = false
	o.model.mu.Unlock()
	if text.String() != "answer to four" {
		t.Errorf("got %q, %v", text.String(), lines.Err())
	}
}

// mcp: a flow is a tool whose calls run on workers.
func (o *office) mcp(t *testing.T) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: o.servers[1].URL + "/mcp", DisableStandaloneSSE: true}, nil)
	testkit.Must(t, err)
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "sum", Arguments: map[string]any{"n": 6}})
	testkit.Must(t, err)
	if raw, _ := json.Marshal(result.StructuredContent); result.IsError || !strings.Contains(string(raw), `"more":7`) {
		t.Errorf("got %s", raw)
	}
}

// affinity: turns of a session that arrive at both servers at the same time run one after the other.
func (o *office) affinity(t *testing.T) {
	o.t = t
	var turns sync.WaitGroup
	for i := range 8 {
		turns.Go(func() {
			o.want(i%2, http.MethodPost, "/flows/chat", fmt.Sprintf(`{"message": "turn %d"}`, i), fmt.Sprintf("answer to turn %d", i), "X-Session-Id", "both")
		})
	}
	turns.Wait()
	longest := ""
	o.model.mu.Lock()
	if o.model.most != 1 {
		t.Errorf("%d turns of the session had calls of the model at once", o.model.most)
	}
	for _, text := range o.model.texts {
		if strings.Contains(text, "turn ") && len(text) > len(longest) {
			longest = text
		}
	}
	o.model.mu.Unlock()
	messages := strings.Split(longest, "|")
	if len(messages) != 15 {
		t.Fatalf("the last turn has %d messages: %s", len(messages), longest)
	}
	for i := 0; i+1 < len(messages); i += 2 {
		if say, ok := strings.CutPrefix(messages[i], "user "); !ok || messages[i+1] != "assistant answer to "+say {
			t.Errorf("messages %q and %q follow each other", messages[i], messages[i+1])
		}
	}
}

// cancels: a run that was canceled by another server has ended there, too.
func (o *office) cancels(t *testing.T) {
	o.t = t
	run := o.begin(0, "b1")
	o.await(1, run, "waiting")
	o.want(1, http.MethodPost, "/runs/"+run+"/cancel", "", "")
	o.await(0, run, "cancelled")
	o.await(1, run, "cancelled")
}

// answers: runs wait for approvals while their worker, and then their server, is killed.
func (o *office) answers(t *testing.T) {
	o.t = t
	runs := []string{o.begin(0, "a2"), o.begin(0, "b4"), o.begin(0, "a3")}
	pending := make([]runState, len(runs))
	for i, run := range runs {
		pending[i] = o.await(1, run, "waiting")
	}
	testkit.Must(t, o.workers[0].Process.Kill())
	answer := func(server, i int, yes bool) {
		t.Helper()
		if len(pending[i].Pending) != 1 || pending[i].Pending[0].Tool != "refund" {
			t.Fatalf("run %d: %+v", i, pending[i])
		}
		o.want(server, http.MethodPost, "/runs/"+runs[i]+"/answer", fmt.Sprintf(`{"id": %q, "approved": %t}`, pending[i].Pending[0].ID, yes), "")
	}
	answer(1, 0, true)
	answer(0, 1, false)
	ends := []string{"done a2", "refused b4", "done a3"}
	for i, want := range ends[:2] {
		if s := o.await(i, runs[i], "succeeded"); len(s.Outputs) != 1 || s.Outputs[0]["result"] != want {
			t.Errorf("run %d: %+v", i, s)
		}
	}
	testkit.Must(t, o.servers[0].Command.Process.Kill())
	answer(1, 2, true)
	if s := o.await(1, runs[2], "succeeded"); len(s.Outputs) != 1 || s.Outputs[0]["result"] != ends[2] {
		t.Errorf("after the end of its server: %+v", s)
	}
	o.model.desk.mu.Lock()
	defer o.model.desk.mu.Unlock()
	for _, line := range o.model.desk.wrong {
		t.Error(line)
	}
	for call, n := range o.model.desk.calls {
		if n != 1 {
			t.Errorf("call %s was made %d times", call, n)
		}
	}
}
