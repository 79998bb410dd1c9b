package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// stallingModel is a model that answers "go on" with "fine" and "say nothing" not at all. It begins an answer to
// "count" with reasoning and "one two". What it does not end waits until its client has gone.
type stallingModel struct {
	*httptest.Server
	requests chan []string // the roles and texts of the messages, without requests that begin an answer
}

func newStallingModel(t *testing.T) *stallingModel {
	t.Helper()
	s := &stallingModel{requests: make(chan []string, 8)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) // a short read fails the assertions of the tests
		var req struct {
			Messages []struct{ Role, Content string } `json:"messages"`
		}
		_ = json.Unmarshal(raw, &req)
		w.Header().Set("Content-Type", "text/event-stream")
		write := func(delta string) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
			_ = http.NewResponseController(w).Flush()
		}
		newest := req.Messages[len(req.Messages)-1].Content
		if newest != "count" {
			var sent []string
			for _, m := range req.Messages {
				sent = append(sent, m.Role+": "+m.Content)
			}
			s.requests <- sent
		}
		switch newest {
		case "go on":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
			return
		case "say nothing":
			<-r.Context().Done()
			return
		}
		write(`{"role":"assistant","reasoning_content":"hm"}`)
		write(`{"content":"one "}`)
		write(`{"content":"two"}`)
		<-r.Context().Done()
	}))
	t.Cleanup(func() { testkit.CloseServer(s.Server) })
	return s
}

// serve serves a flow whose agent has the model.
func (s *stallingModel) serve(t *testing.T) *testServer {
	path := testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(`
id: desk
auths: [{type: api_key, id: k, api_key: "${QTYPE_TEST_UNSET_KEY:-secret-key}"}]
memories: [{id: talks, policy: message_window, max_messages: 40}]
models: [{type: Model, id: clerk, provider: openai, api: chat, model_id: some-model, base_url: "%s/v1", auth: k}]
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, memory: talks, inputs: [message], outputs: [answer]}]
`, s.URL))
	return serveApp(t, openApp(t, path), server.Options{})
}

// follow posts a request, reads its stream until it has a text, and returns the id of the run. leave closes the connection.
func (s *testServer) follow(method, path, body, until string) (run string, leave func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	testkit.Must(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(s.t, err)
	var read strings.Builder
	for part := make([]byte, 512); !strings.Contains(read.String(), until); {
		n, err := resp.Body.Read(part)
		read.Write(part[:n])
		if err != nil {
			s.t.Fatalf("%v after %s", err, read.String())
		}
	}
	return resp.Header.Get("X-Run-Id"), func() {
		cancel()
		_ = resp.Body.Close()
	}
}

// TestStopped_Answer: whichever way a user stops an answer, the session keeps what the user saw, the next
// request has it, and it can be undone.
func TestStopped_Answer(t *testing.T) {
	model := newStallingModel(t)
	s := model.serve(t)
	cancel := func(run string) {
		if got := s.post("/runs/"+run+"/cancel", ""); got.status != http.StatusAccepted {
			t.Errorf("%+v", got)
		}
	}
	for name, stop := range map[string]func(session string) (run string){
		"rest": func(session string) string {
			var run runState
			s.post("/flows/talk", `{"message": "count"}`, "Prefer", "respond-async", "X-Session-Id", session).into(t, &run)
			_, leave := s.follow("GET", "/runs/"+run.ID+"/events", "", "two")
			cancel(run.ID)
			leave()
			return run.ID
		},
		"escape": func(session string) string {
			run, leave := s.follow("POST", "/flows/talk/stream", chatOf(session, "count"), "two")
			cancel(run)
			leave()
			return run
		},
		"stream": func(session string) string {
			run, leave := s.follow("POST", "/flows/talk/stream", chatOf(session, "count"), "two")
			leave()
			return run
		},
		"agui": func(session string) string {
			run, leave := s.follow("POST", "/flows/talk/agui", aguiOf(session, `{"id": "m", "role": "user", "content": "count"}`, ""), "two")
			leave()
			return run
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := stop(name)
			if events := s.do("GET", "/runs/"+run+"/events", ""); !strings.Contains(events.body, `"status":"cancelled"`) {
				t.Errorf("the run: %s", events.body)
			}
			if got, want := s.stored(name), []string{"user: count in_window", "assistant: one two in_window stopped"}; !slices.Equal(got, want) {
				t.Errorf("stored %q", got)
			}
			s.post("/flows/talk", `{"message": "go on"}`, "X-Session-Id", name)
			if got, want := <-model.requests, []string{"user: count", "assistant: one two", "user: go on"}; !slices.Equal(got, want) {
				t.Errorf("the model got %q", got)
			}
			s.post("/sessions/"+name+"/rewind", `{"turn": 1}`)
			s.post("/flows/talk", `{"message": "go on"}`, "X-Session-Id", name)
			if got, want := <-model.requests, []string{"user: go on"}; !slices.Equal(got, want) {
				t.Errorf("after the rewind, the model got %q", got)
			}
		})
	}
}

// stored returns the role, the text, the status and the mark of the messages of a session, as the web interface gets them.
func (s *testServer) stored(session string) (all []string) {
	s.t.Helper()
	var page struct {
		Messages []struct {
			Role, Status string
			Stopped      bool
			Parts        []struct{ Text, Type string }
		}
	}
	s.do("GET", "/sessions/"+session+"/messages", "").into(s.t, &page)
	for _, m := range page.Messages {
		line := m.Role + ":"
		for _, p := range m.Parts {
			line += " " + p.Text
		}
		if line += " " + m.Status; m.Stopped {
			line += " stopped"
		}
		all = append(all, line)
	}
	return all
}

// TestStopped_Call: a turn that is stopped while a call waits keeps the call, with a result.
func TestStopped_Call(t *testing.T) {
	s := serve(t)
	first := s.post("/flows/talk/stream", chatOf("c", "refund order 7"))
	run := first.header.Get("X-Run-Id")
	s.post("/runs/"+run+"/cancel", "")
	s.do("GET", "/runs/"+run+"/events", "")
	got := s.do("GET", "/sessions/c/messages", "").body
	for _, want := range []string{`"state":"output-error"`, "not called, because the run ended before it was approved", `"text":"(stopped)"`, `"stopped":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "failed") {
		t.Error(got)
	}
}

// TestStopped_Nothing: a turn that is stopped before its first word is not part of the conversation, and has not failed.
func TestStopped_Nothing(t *testing.T) {
	model := newStallingModel(t)
	s := model.serve(t)
	var run runState
	s.post("/flows/talk", `{"message": "say nothing"}`, "Prefer", "respond-async", "X-Session-Id", "c").into(t, &run)
	<-model.requests
	s.post("/runs/"+run.ID+"/cancel", "")
	s.do("GET", "/runs/"+run.ID+"/events", "")
	if got, want := s.stored("c"), []string{"user: say nothing stopped"}; !slices.Equal(got, want) {
		t.Errorf("stored %q", got)
	}
}

// TestStopped_Round: a turn that is stopped during a round of calls keeps the results that came, and says
// of each other call whether it began.
func TestStopped_Round(t *testing.T) {
	const interrupted, refused = "the user stopped the run before this call had ended", "not called, because the run had ended"
	for name, want := range map[string][]string{
		"parallel_tools: true":  {"paid 7", interrupted, "paid 9"},
		"parallel_tools: false": {"paid 7", interrupted, refused},
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan bool, 1)
			shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the context ends with the client only after the body
				order := strings.TrimPrefix(r.URL.Path, "/")
				if order == "8" {
					began <- true
					<-r.Context().Done()
					return
				}
				fmt.Fprintf(w, `{"receipt": "paid %s"}`, order)
			}))
			defer testkit.CloseServer(shop)
			s := serveApp(t, openApp(t, testkit.WriteFile(t, "app.qtype.yaml", fmt.Sprintf(roundApp, shop.URL, name))), server.Options{})
			var run runState
			s.post("/flows/talk", `{"message": "pay"}`, "Prefer", "respond-async", "X-Session-Id", "c").into(t, &run)
			<-began
			for _, result := range want {
				if strings.HasPrefix(result, "paid") {
					_, leave := s.follow("GET", "/runs/"+run.ID+"/events", "", result)
					leave()
				}
			}
			s.post("/runs/"+run.ID+"/cancel", "")
			s.do("GET", "/runs/"+run.ID+"/events", "")
			got := s.do("GET", "/sessions/c/messages", "").body
			for i, result := range want {
				_, call, _ := strings.Cut(got, fmt.Sprintf(`"input":{"order":%d}`, 7+i))
				if call, _, _ = strings.Cut(call, `"input"`); !strings.Contains(call, result) {
					t.Errorf("call %d: no %q in %s", i+1, result, got)
				}
			}
			if !strings.Contains(got, `"stopped":true`) {
				t.Error(got)
			}
		})
	}
}

// roundApp is a document whose agent pays three orders in one answer.
const roundApp = `
id: desk
memories: [{id: talks, policy: message_window, max_messages: 40}]
models:
  - type: Model
    id: clerk
    provider: mock
    rules: [{match: pay, tool_calls: [{name: pay, arguments: {order: 7}}, {name: pay, arguments: {order: 8}}, {name: pay, arguments: {order: 9}}]}]
tools:
  - {type: APITool, id: pay, name: pay, description: Pays, method: POST, endpoint: "%s/{order}", allow_private: true, inputs: [{id: order, type: int}], outputs: [{id: receipt, type: text}]}
flows:
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: Agent, id: help, model: clerk, memory: talks, tools: [pay], %s, inputs: [message], outputs: [answer]}]
`
