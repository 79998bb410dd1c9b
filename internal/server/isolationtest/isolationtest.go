// Package isolationtest checks that applications with one database are apart from each other, for every kind of store.
package isolationtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
)

// document is an application whose id follows.
const document = `models:
  - type: Model
    id: clerk
    provider: mock
    rules:
      - {after: tool, text: "The desk has  answered."}
      - {match: '(?i)refund order (\d+)', tool_calls: [{name: refund, arguments: {order: $1}}]}
      - {echo: true}
memories:
  - {id: talks, policy: message_window, max_messages: 40}
tools:
  - {type: FlowTool, id: refund, name: refund, description: Pays an order back, flow: pay_back}
flows:
  - id: talk
    description: Talks with the user.
    feedback: {type: thumbs, explanation: true}
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: Agent, id: help, model: clerk, memory: talks, tools: [refund], approve: [refund], inputs: [message], outputs: [answer]}
  - id: greet
    interface: {type: Conversational, session_inputs: [language], on_disconnect: finish}
    variables: [{id: message, type: ChatMessage}, {id: language, type: text}, {id: prompt, type: text}, {id: answer, type: ChatMessage}]
    inputs: [message, language]
    outputs: [answer]
    steps:
      - {type: PromptTemplate, id: ask, template: "{language}: {message}", inputs: [language, message], outputs: [prompt]}
      - {type: LLMInference, id: reply, model: clerk, inputs: [prompt], outputs: [answer]}
  - id: complete
    interface: {type: Complete}
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: finish, model: clerk, inputs: [question], outputs: [answer]}
  - id: constant
    variables: [{id: prompt, type: text}]
    outputs: [prompt]
    steps: [{type: PromptTemplate, id: fixed, template: "hello", outputs: [prompt]}]
  - id: pay_back
    variables: [{id: order, type: int}, {id: receipt, type: text}]
    inputs: [order]
    outputs: [receipt]
    steps: [{type: PromptTemplate, id: book, template: "R{order}", inputs: [order], outputs: [receipt]}]
`

// client calls a server.
type client struct {
	own     *server.Server
	address string
	t       testing.TB
}

func (c *client) do(method, path, body string, headers ...string) testkit.Reply {
	c.t.Helper()
	return testkit.Request(c.t, method, c.address+path, body, headers...)
}

func (c *client) post(path, body string, headers ...string) testkit.Reply {
	c.t.Helper()
	return c.do(http.MethodPost, path, body, headers...)
}

// serve serves the application with an id.
func serve(t testing.TB, id string, open func() (store.Store, error)) *client {
	t.Helper()
	s, err := open()
	testkit.Must(t, err)
	app, err := runtimetest.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", "id: "+id+"\n"+document), runtime.Options{Store: s})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	own := server.New(app, server.Options{})
	h := httptest.NewServer(own)
	t.Cleanup(func() {
		testkit.CloseServer(h)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = own.Shutdown(ctx)
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return &client{own, h.URL, t}
}

// chatOf returns a request of a chat.
func chatOf(id, text string) string {
	return `{"id": "` + id + `", "message": {"id": "m", "role": "user", "parts": [{"type": "text", "text": "` + text + `"}]}}`
}

// OneDatabase checks that two applications with one database, and with equal ids of flows, memories, sessions and
// requests, see and change nothing of each other. open opens a new connection to the database.
func OneDatabase(t *testing.T, open func() (store.Store, error)) {
	t.Helper()
	own, other := serve(t, "prod", open), serve(t, "staging", open)
	checkFeedback(t, own, other)
	checkConversations(t, own, other)
	checkRequests(t, own, other)
	checkRuns(t, own, other, func() *client { return serve(t, "prod", open) })
	checkRecords(t, own, other)
}

// checkConversations: sessions, titles, messages and the inputs of a session.
func checkConversations(t *testing.T, own, other *client) {
	t.Helper()
	own.post("/flows/talk/stream", chatOf("c", "my secret"))
	for _, path := range []string{"/sessions", "/sessions?q=secret", "/sessions/messages?search=secret"} {
		if got := other.do("GET", path, ""); got.Status != http.StatusOK || strings.Contains(got.Body, "secret") {
			t.Errorf("%s of the other application: %+v", path, got)
		}
	}
	for _, request := range []string{"GET /sessions/c", "GET /sessions/c/messages", "GET /sessions/c/export", "DELETE /sessions/c"} {
		method, path, _ := strings.Cut(request, " ")
		if got := other.do(method, path, ""); got.Status != http.StatusNotFound {
			t.Errorf("%s of the other application: %+v", request, got)
		}
	}
	if got := other.post("/flows/talk/stream", chatOf("c", "hello")); !strings.Contains(got.Body, "hello") {
		t.Errorf("%+v", got)
	}
	if got := other.do("DELETE", "/sessions/c", ""); got.Status != http.StatusNoContent {
		t.Errorf("%+v", got)
	}
	if got := own.do("GET", "/sessions", ""); !strings.Contains(got.Body, "my secret") {
		t.Errorf("after the other application has deleted its session of the same id: %+v", got)
	}
	own.post("/flows/greet", `{"message": "Hello", "language": "Frisian"}`, "X-Session-Id", "g")
	if got := other.post("/flows/greet", `{"message": "Hello"}`, "X-Session-Id", "g"); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("inputs of the session: %+v", got)
	}
}

// checkFeedback: feedback belongs to a turn of one application, the newest of a turn counts, and it is deleted with the session.
func checkFeedback(t *testing.T, own, other *client) {
	t.Helper()
	given := func(s *client) string {
		var session struct{ Feedback []*appstate.Feedback }
		s.do("GET", "/sessions/f", "").Into(t, &session)
		var all []string
		for _, f := range session.Feedback {
			all = append(all, fmt.Sprint(f.Turn, " ", f.Label(), " ", f.Explanation))
		}
		return strings.Join(all, ", ")
	}
	say := func(s *client) string {
		return s.post("/flows/talk/stream", chatOf("f", "Hello")).Header.Get("X-Run-Id")
	}
	rate := func(s *client, run string, up bool, why string, want int) {
		t.Helper()
		body := fmt.Sprintf(`{"run": %q, "feedback": {"type": "thumbs", "value": %v, "explanation": %q}}`, run, up, why)
		if got := s.post("/feedback", body); got.Status != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
	first, second := say(own), say(own)
	say(other)
	rate(own, second, true, "right", http.StatusOK)
	rate(own, first, true, "fast", http.StatusOK)
	rate(own, first, false, "wrong", http.StatusOK)
	rate(other, first, false, "not mine", http.StatusNotFound)
	rate(own, "", true, "", http.StatusNotFound)
	rate(own, first, false, strings.Repeat("x", 20_000), http.StatusUnprocessableEntity)
	if got := given(own); got != "2 up right, 1 down wrong" {
		t.Errorf("the feedback: %s", got)
	}
	if got := given(other); got != "" {
		t.Errorf("the feedback of the other application: %s", got)
	}
	other.do("DELETE", "/sessions/f", "")
	if got := given(own); got != "2 up right, 1 down wrong" {
		t.Errorf("after the other application has deleted its session of the same id: %s", got)
	}
	own.do("DELETE", "/sessions/f", "")
	for h, err := range own.own.App().State().Records(appstate.Ratings).List(t.Context(), store.RecordQuery{}) {
		t.Errorf("left of the session: %+v, %v", h, err)
	}
	rate(own, first, false, "too late", http.StatusNotFound)
	say(own)
	for body, want := range map[string]int{`"session": "f", "turn": 1`: http.StatusOK, `"session": "f", "turn": 2`: http.StatusNotFound, `"session": "f", "turn": -1`: http.StatusNotFound,
		`"session": "f", "turn": 1, "memory": "none"`: http.StatusNotFound, `"session": "none", "turn": 1`: http.StatusNotFound} {
		if got := own.post("/feedback", `{"run": "of another server", `+body+`, "feedback": {"type": "thumbs", "value": false}}`); got.Status != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := given(own); got != "1 down " {
		t.Errorf("the feedback by the turn: %s", got)
	}
}

// checkRequests: idempotency keys and stored responses.
func checkRequests(t *testing.T, own, other *client) {
	t.Helper()
	own.post("/flows/constant", `{}`, "Idempotency-Key", "k")
	if got := other.post("/flows/complete", `{"question":"x"}`, "Idempotency-Key", "k"); got.Status != http.StatusOK {
		t.Errorf("idempotency key: %+v", got)
	}
	var response struct{ ID string }
	own.post("/v1/responses", `{"model":"talk","input":"my secret"}`).Into(t, &response)
	if response.ID == "" {
		t.Fatal("no response")
	}
	if got := other.post("/v1/responses", `{"model":"talk","input":"hi","previous_response_id":"`+response.ID+`"}`); got.Status == http.StatusOK || strings.Contains(got.Body, "secret") {
		t.Errorf("response: %+v", got)
	}
}

// checkRuns: a run that waits is found, answered, cancelled and continued by its own application only.
func checkRuns(t *testing.T, own, other *client, again func() *client) {
	t.Helper()
	var run struct {
		ID, Status string
		Pending    []struct{ ID string }
	}
	own.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "r").Into(t, &run)
	if run.Status != "waiting" {
		t.Fatalf("the run is %+v", run)
	}
	answer := `{"id":"` + run.Pending[0].ID + `","approved":true}`
	refused := func() {
		t.Helper()
		for _, request := range []string{"GET /runs/" + run.ID, "GET /runs/" + run.ID + "/events", "POST /runs/" + run.ID + "/answer", "POST /runs/" + run.ID + "/cancel", "DELETE /runs/" + run.ID} {
			method, path, _ := strings.Cut(request, " ")
			if got := other.do(method, path, answer); got.Status != http.StatusNotFound && got.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s of the other application: %+v", request, got)
			}
		}
		if got := other.do("GET", "/runs", ""); strings.Contains(got.Body, run.ID) {
			t.Errorf("runs of the other application: %+v", got)
		}
	}
	refused()
	testkit.Must(t, own.own.Shutdown(t.Context())) // the run has no process
	refused()
	if n, err := other.own.Resume(t.Context()); n != 0 || err != nil {
		t.Errorf("the other application resumed %d runs, %v", n, err)
	}
	next := again()
	n, err := next.own.Resume(t.Context())
	testkit.Must(t, err)
	if n != 1 {
		t.Errorf("the application resumed %d runs", n)
	}
	if got := next.post("/runs/"+run.ID+"/answer", answer); got.Status != http.StatusOK {
		t.Errorf("the answer: %+v", got)
	}
	next.do("GET", "/runs/"+run.ID+"/events", "")
	if got := next.do("GET", "/runs/"+run.ID, ""); !strings.Contains(got.Body, `"status":"succeeded"`) {
		t.Errorf("the run: %+v", got)
	}
}

// checkRecords: no kind of record is shared, whichever the server has written.
func checkRecords(t *testing.T, own, other *client) {
	t.Helper()
	ids := func(app store.Application, kind string) []string {
		var all []string
		for h, err := range app.Records(kind).List(t.Context(), store.RecordQuery{Expired: true}) {
			testkit.Must(t, err)
			all = append(all, h.ID)
		}
		return all
	}
	mine, its := own.own.App().State(), other.own.App().State()
	for _, kind := range appstate.Kinds() {
		testkit.Must(t, mine.Records(kind).Write(t.Context(), "mark", store.RecordChange{Next: 1, Stored: time.Now()})) // without a time, it may be removed as expired
		for _, id := range ids(its, kind) {
			if id == "mark" {
				t.Errorf("%s: the other application has the record", kind)
			}
		}
		testkit.Must(t, appstate.DeleteAll(t.Context(), its.Records(kind), ""))
		if rec, err := mine.Records(kind).Get(t.Context(), "mark"); err != nil || rec.Version != 1 {
			t.Errorf("%s: %+v, %v after the other application has deleted all", kind, rec, err)
		}
	}
}
