package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	memoryservers "github.com/qtype-dev/qtype/internal/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// databases returns functions that open a new connection to one database of each kind.
func databases(t *testing.T) map[string]func() (store.Store, error) {
	pg, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, pg.Close()) })
	redis, err := servertest.Redis()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, redis.Close()) })
	key, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	testkit.Must(t, err)
	shared := clockedStore{memory.NewInProcess()}
	at := func(address string, opts ...storeurl.Option) func() (store.Store, error) {
		opts = append(opts, storeurl.Among(memoryservers.Openers()))
		return func() (store.Store, error) { return storeurl.Open(address, opts...) }
	}
	return map[string]func() (store.Store, error){
		"in process": func() (store.Store, error) { return shared, nil },
		"sqlite":     at("sqlite:" + filepath.Join(t.TempDir(), "memory.db")),
		"postgres":   at(pg.URL()),
		"redis":      at("redis://" + redis.Address() + "/0"),
		"encrypted":  at("sqlite:"+filepath.Join(t.TempDir(), "memory.db"), storeurl.Encrypt(encrypted.Keys{Key: key})),
	}
}

// TestApplications_OneDatabase checks that two applications with one database, and with equal
// ids of flows, memories, sessions and requests, see and change nothing of each other.
func TestApplications_OneDatabase(t *testing.T) {
	for name, open := range databases(t) {
		t.Run(name, func(t *testing.T) {
			serve := func(id string) *testServer {
				s, err := open()
				testkit.Must(t, err)
				app, err := qtype.Open(t.Context(), changedApp(t, "id: desk", "id: "+id, "description: Talks with the user.", "feedback: {type: thumbs, explanation: true}"), qtype.WithStore(s))
				testkit.Must(t, err)
				t.Cleanup(func() { _ = app.Close(context.Background()) })
				return serveApp(t, app, server.Options{})
			}
			own, other := serve("prod"), serve("staging")
			checkFeedback(t, own, other)
			checkConversations(t, own, other)
			checkRequests(t, own, other)
			checkRuns(t, own, other, func() *testServer { return serve("prod") })
			checkRecords(t, own, other)
		})
	}
}

// checkConversations: sessions, titles, messages and the inputs of a session.
func checkConversations(t *testing.T, own, other *testServer) {
	t.Helper()
	own.post("/flows/talk/stream", chatOf("c", "my secret"))
	for _, path := range []string{"/sessions", "/sessions?q=secret", "/sessions/messages?search=secret"} {
		if got := other.do("GET", path, ""); got.status != http.StatusOK || strings.Contains(got.body, "secret") {
			t.Errorf("%s of the other application: %+v", path, got)
		}
	}
	for _, request := range []string{"GET /sessions/c", "GET /sessions/c/messages", "GET /sessions/c/export", "DELETE /sessions/c"} {
		method, path, _ := strings.Cut(request, " ")
		if got := other.do(method, path, ""); got.status != http.StatusNotFound {
			t.Errorf("%s of the other application: %+v", request, got)
		}
	}
	if got := other.post("/flows/talk/stream", chatOf("c", "hello")); !strings.Contains(got.body, "hello") {
		t.Errorf("%+v", got)
	}
	if got := other.do("DELETE", "/sessions/c", ""); got.status != http.StatusNoContent {
		t.Errorf("%+v", got)
	}
	if got := own.do("GET", "/sessions", ""); !strings.Contains(got.body, "my secret") {
		t.Errorf("after the other application has deleted its session of the same id: %+v", got)
	}
	own.post("/flows/greet", `{"message": "Hello", "language": "Frisian"}`, "X-Session-Id", "g")
	if got := other.post("/flows/greet", `{"message": "Hello"}`, "X-Session-Id", "g"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("inputs of the session: %+v", got)
	}
}

// checkFeedback: feedback belongs to a turn of one application, the newest of a turn counts, and it is deleted with the session.
func checkFeedback(t *testing.T, own, other *testServer) {
	t.Helper()
	given := func(s *testServer) string {
		var session struct{ Feedback []*appstate.Feedback }
		s.do("GET", "/sessions/f", "").into(t, &session)
		var all []string
		for _, f := range session.Feedback {
			all = append(all, fmt.Sprint(f.Turn, " ", f.Label(), " ", f.Explanation))
		}
		return strings.Join(all, ", ")
	}
	say := func(s *testServer) string {
		return s.post("/flows/talk/stream", chatOf("f", "Hello")).header.Get("X-Run-Id")
	}
	rate := func(s *testServer, run string, up bool, why string, want int) {
		t.Helper()
		body := fmt.Sprintf(`{"run": %q, "feedback": {"type": "thumbs", "value": %v, "explanation": %q}}`, run, up, why)
		if got := s.post("/feedback", body); got.status != want {
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
		if got := own.post("/feedback", `{"run": "of another server", `+body+`, "feedback": {"type": "thumbs", "value": false}}`); got.status != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := given(own); got != "1 down " {
		t.Errorf("the feedback by the turn: %s", got)
	}
}

// checkRequests: idempotency keys and stored responses.
func checkRequests(t *testing.T, own, other *testServer) {
	t.Helper()
	own.post("/flows/constant", `{}`, "Idempotency-Key", "k")
	if got := other.post("/flows/complete", `{"question":"x"}`, "Idempotency-Key", "k"); got.status != http.StatusOK {
		t.Errorf("idempotency key: %+v", got)
	}
	var response struct{ ID string }
	own.post("/v1/responses", `{"model":"talk","input":"my secret"}`).into(t, &response)
	if response.ID == "" {
		t.Fatal("no response")
	}
	if got := other.post("/v1/responses", `{"model":"talk","input":"hi","previous_response_id":"`+response.ID+`"}`); got.status == http.StatusOK || strings.Contains(got.body, "secret") {
		t.Errorf("response: %+v", got)
	}
}

// checkRuns: a run that waits is found, answered, cancelled and continued by its own application only.
func checkRuns(t *testing.T, own, other *testServer, again func() *testServer) {
	t.Helper()
	var run waitingRun
	own.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "r").into(t, &run)
	if run.Status != "waiting" {
		t.Fatalf("the run is %+v", run)
	}
	answer := `{"id":"` + run.Pending[0].ID + `","approved":true}`
	refused := func() {
		t.Helper()
		for _, request := range []string{"GET /runs/" + run.ID, "GET /runs/" + run.ID + "/events", "POST /runs/" + run.ID + "/answer", "POST /runs/" + run.ID + "/cancel", "DELETE /runs/" + run.ID} {
			method, path, _ := strings.Cut(request, " ")
			if got := other.do(method, path, answer); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s of the other application: %+v", request, got)
			}
		}
		if got := other.do("GET", "/runs", ""); strings.Contains(got.body, run.ID) {
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
	if got := next.post("/runs/"+run.ID+"/answer", answer); got.status != http.StatusOK {
		t.Errorf("the answer: %+v", got)
	}
	next.do("GET", "/runs/"+run.ID+"/events", "")
	if got := next.do("GET", "/runs/"+run.ID, ""); !strings.Contains(got.body, `"status":"succeeded"`) {
		t.Errorf("the run: %+v", got)
	}
}

// checkRecords: no kind of record is shared, whichever the server has written.
func checkRecords(t *testing.T, own, other *testServer) {
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
