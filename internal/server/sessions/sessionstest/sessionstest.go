// Package sessionstest has tests of the sessions of a server, for every kind of store.
package sessionstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/sessions"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

const document = `id: shop
models: [{type: Model, id: echo, provider: mock, model_id: echo}]
memories:
  - {id: talk, policy: message_window, max_messages: 4}
  - {id: notes, policy: unbounded}
  - {id: other, policy: unbounded, ttl: 24h}
flows:
  - id: chat
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}, {id: note, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps:
      - {type: LLMInference, id: reply, model: echo, memory: talk, inputs: [message], outputs: [answer]}
      - {type: LLMInference, id: keep, model: echo, memory: notes, inputs: [answer], outputs: [note]}
  - id: aside
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: answer, type: ChatMessage}]
    inputs: [message]
    outputs: [answer]
    steps: [{type: LLMInference, id: aside_reply, model: echo, memory: other, inputs: [message], outputs: [answer]}]
`

// Server is a Service with its application.
type Server struct {
	*sessions.Service
	App   *runtime.App
	Store memory.Store
	Clock time.Time
	Log   bytes.Buffer
}

// New returns a Server with the flows chat and aside over a store.
func New(t testing.TB, store memory.Store, change ...func(*sessions.Options)) *Server {
	t.Helper()
	app, err := runtimetest.Open(t.Context(), testkit.WriteFile(t, "app.qtype.yaml", document), runtime.Options{Store: store})
	testkit.Must(t, err)
	s := &Server{App: app, Store: store, Clock: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	o := sessions.Options{App: func() sessions.App { return app }, State: app.State, Log: slog.New(slog.NewTextHandler(&s.Log, nil)),
		Now: func() time.Time { s.Clock = s.Clock.Add(time.Second); return s.Clock }}
	for _, c := range change {
		c(&o)
	}
	s.Service = sessions.New(o)
	return s
}

// As returns a context of requests of a caller.
func As(name string) context.Context {
	return access.WithPrincipal(context.Background(), access.Principal{Name: name})
}

// Call makes a request and returns status and body.
func (s *Server) Call(caller, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(As(caller), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// Must is Call for a response with a status.
func (s *Server) Must(t testing.TB, caller, request, body string, status int) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	code, text := s.Call(caller, method, path, body)
	if code != status {
		t.Fatalf("%s of %s: got %d %s\n%s", request, caller, code, text, s.Log.String())
	}
	return text
}

// Get is Must for a JSON value.
func Get[T any](t testing.TB, s *Server, caller, request, body string, status int) T {
	t.Helper()
	var out T
	testkit.Must(t, json.Unmarshal([]byte(s.Must(t, caller, request, body, status)), &out))
	return out
}

// Say adds a turn of the flow chat, as a run does.
func (s *Server) Say(t testing.TB, caller, id, question string) {
	t.Helper()
	stored := access.Principal{Name: caller}.StoredSession(id)
	testkit.Must(t, s.Record(As(caller), "chat", stored, question))
	for _, m := range []string{"talk", "notes"} {
		testkit.Must(t, s.App.Memory(m).Turn(As(caller), stored, func(turn *memory.Turn) error {
			return turn.Add(chat.Text(chat.User, question), chat.Text(chat.Assistant, "re: "+question))
		}))
	}
}

type listed struct {
	Sessions []struct {
		ID, Title, Flow string
		Messages        int
		Updated         time.Time
		Memories        []string
	}
	Next *string
}

func (l listed) ids() (ids []string) {
	for _, s := range l.Sessions {
		ids = append(ids, s.ID)
	}
	return ids
}

type one struct {
	ID, Title, Flow string
	Created         time.Time
	Memories        []struct {
		ID, Policy, Unit                              string
		Messages, Turns, Used, Limit, Tokens, Flushes int
		InWindow                                      int `json:"in_window"`
	}
	Run *string
}

type page struct {
	Messages []struct {
		Role, Status string
		Parts        []map[string]any
	}
}

// Turns returns the live texts of a session in one memory.
func (s *Server) Turns(t testing.TB, caller, path, of string) (all []string) {
	t.Helper()
	for _, m := range Get[page](t, s, caller, "GET "+path+"/messages?memory="+of, "", 200).Messages {
		if m.Status != "replaced" && m.Role == "user" {
			all = append(all, m.Parts[0]["text"].(string))
		}
	}
	return all
}

// Replicas checks that two servers over one store see what the other changes at once. open opens it.
func Replicas(t *testing.T, open func() (memory.Store, error)) {
	t.Helper()
	var replicas []*Server
	for range 2 {
		store, err := open()
		testkit.Must(t, err)
		s := New(t, store)
		defer func() { testkit.Must(t, s.App.Close(context.Background())) }()
		replicas = append(replicas, s)
	}
	a, b := replicas[0], replicas[1]
	for n := range 6 {
		s := replicas[n%2]
		id := fmt.Sprint("s", n)
		s.Say(t, "ada", id, "q1")
		replicas[1-n%2].Say(t, "ada", id, "q2")
		for _, s := range replicas {
			if got := s.Turns(t, "ada", "/sessions/"+id, "talk"); len(got) != 2 {
				t.Errorf("%s has %v", id, got)
			}
		}
	}
	a.Must(t, "ada", "PATCH /sessions/s0", `{"title":"By A"}`, 200)
	if got := Get[one](t, b, "ada", "GET /sessions/s0", "", 200); got.Title != "By A" {
		t.Errorf("B has the title %q", got.Title)
	}
	a.Must(t, "ada", "POST /sessions/s0/fork", `{"turn":1,"id":"fork"}`, 201)
	if got := b.Turns(t, "ada", "/sessions/fork", "talk"); len(got) != 1 {
		t.Errorf("B has the fork %v", got)
	}
	b.Must(t, "ada", "POST /sessions/fork/rewind", `{"turn":1}`, 200)
	if got := a.Turns(t, "ada", "/sessions/fork", "talk"); len(got) != 0 {
		t.Errorf("A has the fork %v", got)
	}
	b.Must(t, "ada", "DELETE /sessions/s0", "", 204)
	a.Must(t, "ada", "GET /sessions/s0", "", 404)
	want := Get[listed](t, a, "ada", "GET /sessions", "", 200).ids()
	if d := cmp.Diff(want, Get[listed](t, b, "ada", "GET /sessions", "", 200).ids()); d != "" || len(want) != 6 {
		t.Errorf("%v listed, %s", want, d)
	}
	begin := make(chan error)
	for _, s := range replicas {
		go func() { begin <- s.Record(As("ada"), "chat", access.Principal{Name: "ada"}.StoredSession("both"), "q") }()
	}
	for range replicas {
		testkit.Must(t, <-begin)
	}
	n := 0
	for _, id := range Get[listed](t, a, "ada", "GET /sessions", "", 200).ids() {
		if id == "both" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("a session that both began is listed %d times", n)
	}
}

// Measure measures requests of a caller with 500 sessions among 2,000 in a store.
func Measure(b *testing.B, store memory.Store) {
	b.Helper()
	s := New(b, store)
	defer func() { testkit.Must(b, s.App.Close(context.Background())) }()
	for n := range 2_000 {
		s.Say(b, []string{"ada", "bob", "cid", "dan"}[n%4], fmt.Sprint("s", n), "question")
	}
	for _, path := range []string{"/sessions", "/sessions?q=nothing", "/sessions/s4", "/sessions/s4/messages", "/sessions/s4/context"} {
		b.Run(path[1:], func(b *testing.B) {
			for b.Loop() {
				s.Must(b, "ada", "GET "+path, "", 200)
			}
		})
	}
}
