package server_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// shutdownNow ends a server without time for its runs.
func (s *testServer) shutdownNow() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.own.Shutdown(ctx)
}

// awaitStart waits until the run of a session has started. One that is only listed is not stored yet.
func (s *testServer) awaitStart(session string) {
	s.t.Helper()
	var id string
	for id == "" {
		var list struct {
			Runs []struct{ ID, Session string }
		}
		s.do("GET", "/runs?status=running", "").into(s.t, &list)
		for _, r := range list.Runs {
			if r.Session == session {
				id = r.ID
			}
		}
		time.Sleep(time.Millisecond)
	}
	resp, err := http.Get(s.URL + "/runs/" + id + "/events")
	testkit.Must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "run.started") {
			return
		}
	}
	s.t.Fatalf("the run of %s has not started", session)
}

// TestShutdown_Answers checks what clients of active runs get when the server ends.
func TestShutdown_Answers(t *testing.T) {
	s := serveWith(t, "delay: 50ms", "delay: 1s")
	type answer struct {
		name string
		reply
	}
	answers := make(chan answer, 4)
	send := func(name, path, body string, headers ...string) {
		go func() { answers <- answer{name, s.post(path, body, headers...)} }()
		s.awaitStart(name)
	}
	send("rest", "/flows/talk", `{"message": "slow"}`, "X-Session-Id", "rest")
	send("key", "/flows/talk", `{"message": "slow"}`, "X-Session-Id", "key", "Idempotency-Key", "k")
	send("stream", "/flows/talk/stream", chatOf("stream", "slow"))
	send("openai", "/v1/chat/completions", `{"model": "talk", "messages": [{"role": "user", "content": "slow"}]}`, "X-Session-Id", "openai")
	s.shutdownNow()
	for range 4 {
		a := <-answers
		var run waitingRun
		ok := a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "shutting_down") && a.header.Get("Retry-After") != ""
		switch a.name {
		case "rest": // the run continues: the request must not be sent again
			a.into(t, &run)
			ok = a.status == http.StatusAccepted && run.Status == "running" && strings.HasSuffix(a.header.Get("Location"), "/runs/"+run.ID)
		case "openai":
			ok = a.status == http.StatusServiceUnavailable && a.header.Get("X-Should-Retry") == "false" && a.header.Get("Retry-After") == ""
		case "stream":
			ok = strings.Contains(a.body, "shutting down") && strings.HasSuffix(strings.TrimSpace(a.body), "data: [DONE]")
		}
		if !ok {
			t.Errorf("%s: %d %v %s", a.name, a.status, a.header, a.body)
		}
	}
}

// TestShutdown_Suspended checks that a client which follows a run that waits learns that
// the run has not failed.
func TestShutdown_Suspended(t *testing.T) {
	s := serve(t)
	var run waitingRun
	s.post("/flows/talk", `{"message": "refund order 7"}`).into(t, &run)
	rest := s.open("/runs/" + run.ID + "/events")
	testkit.Must(t, s.own.Shutdown(t.Context()))
	if text := rest(); !strings.Contains(text, `"status":"suspended"`) || strings.Contains(text, "failed") {
		t.Errorf("got %s", text)
	}
}

// TestEvents_AfterRestart checks that a client which follows a run of a server that has
// ended gets its events when another server continues it.
func TestEvents_AfterRestart(t *testing.T) {
	store := inprocess.New()
	app := openApp(t, "testdata/app.qtype.yaml", qtype.WithStore(server.KeepOpen(store)))
	first := serveApp(t, app, server.Options{})
	var run waitingRun
	first.post("/flows/talk", `{"message": "refund order 7"}`).into(t, &run)
	second := serveApp(t, app, server.Options{Heartbeat: 10 * time.Millisecond})
	rest := make(chan string)
	open := second.open("/runs/" + run.ID + "/events")
	go func() { rest <- open() }()
	testkit.Must(t, first.own.Shutdown(t.Context()))
	if n, err := second.own.Resume(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d runs were resumed: %v", n, err)
	}
	if r := second.post("/runs/"+run.ID+"/answer", `{"id": "`+run.Pending[0].ID+`", "approved": true}`); r.status != http.StatusOK {
		t.Fatalf("the answer got %d %s", r.status, r.body)
	}
	if text := <-rest; !strings.Contains(text, "event: request.opened") || !strings.Contains(text, `"status":"succeeded"`) {
		t.Errorf("got %s", text)
	}
}

// TestStream_AnswerElsewhere checks that a chat client may send its answers to another
// server than the one with the run.
func TestStream_AnswerElsewhere(t *testing.T) {
	app := openApp(t, "testdata/app.qtype.yaml")
	first, second := serveApp(t, app, server.Options{}), serveApp(t, app, server.Options{})
	id := first.post("/flows/talk/stream", chatOf("c", "refund order 7")).header.Get("X-Run-Id")
	var run waitingRun
	second.do("GET", "/runs/"+id, "").into(t, &run)
	answer := `{"id": "c", "messages": [{"id": "msg_` + id + `", "role": "assistant", "parts": [{"type": "tool-refund",
		"state": "approval-responded", "toolCallId": "x", "approval": {"id": "` + run.Pending[0].ID + `", "approved": true}}]}]}`
	got := second.post("/flows/talk/stream", answer)
	if !strings.Contains(got.body, "The desk has  answered.") || !strings.Contains(got.body, `"finishReason":"stop"`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if again := second.post("/flows/talk/stream", answer); again.status != http.StatusConflict {
		t.Errorf("the second answer got %d %s", again.status, again.body)
	}
	if other := second.post("/flows/talk/stream", strings.Replace(answer, `"c"`, `"d"`, 1)); other.status != http.StatusConflict {
		t.Errorf("another chat got %d %s", other.status, other.body)
	}
}
