package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// clockedStore is a store that several machines could share, and that is not closed.
type clockedStore struct{ store.Store }

func (clockedStore) Close() error { return nil }

func (clockedStore) Time(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

// serveReplicas serves testdata/app.qtype.yaml, after replacements of its text, twice, as two
// machines with one store.
func serveReplicas(t *testing.T, replace ...string) (first, second *testServer) {
	t.Helper()
	path := changedApp(t, replace...)
	shared := clockedStore{memory.NewInProcess()}
	open := func() *testServer {
		app, err := qtype.Open(t.Context(), path, qtype.WithStore(shared))
		testkit.Must(t, err)
		t.Cleanup(func() { _ = app.Close(context.Background()) })
		return serveApp(t, app, server.Options{})
	}
	return open(), open()
}

// TestReplicas_MessageInsteadOfAnswer checks that a message to one server ends the run that
// waits on another one, by each protocol.
func TestReplicas_MessageInsteadOfAnswer(t *testing.T) {
	first, second := serveReplicas(t)
	for name, send := range map[string]func(session string) reply{
		"stream": func(session string) reply { return second.post("/flows/talk/stream", chatOf(session, "never mind")) },
		"agui": func(session string) reply {
			return second.post("/flows/talk/agui", `{"threadId": "`+session+`", "runId": "r", "messages": [{"id": "n", "role": "user", "content": "never mind"}]}`)
		},
	} {
		waits := first.post("/flows/talk/stream", chatOf(name, "refund order 7"))
		if !strings.Contains(waits.body, "tool-approval-request") {
			t.Fatal(waits.body)
		}
		if got := send(name); got.status != http.StatusOK || !strings.Contains(got.body, "never") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if run := second.do("GET", "/runs/"+waits.header.Get("X-Run-Id"), ""); !strings.Contains(run.body, `"status":"cancelled"`) {
			t.Errorf("%s: the first run: %s", name, run.body)
		}
	}
}

// aguiOf returns the body of an AG-UI client that continues a thread.
func aguiOf(thread, message, more string) string {
	return `{"threadId": "` + thread + `", "runId": "r", "messages": [` + message + `]` + more + `}`
}

// TestReplicas_AGUIAnswers checks that an AG-UI client can answer at one server a run that waits
// on another one, also where no lease of a memory names the run.
func TestReplicas_AGUIAnswers(t *testing.T) {
	for _, memory := range []string{"memory: talks, ", ""} {
		first, second := serveReplicas(t, "memory: talks, ", memory)
		waits := first.post("/flows/talk/agui", aguiOf("a", `{"id": "m", "role": "user", "content": "where am I"}`, ""))
		call := between(waits.body, `"toolCallId":"`, `"`)
		parent := between(waits.body, `"parentMessageId":"`, `"`)
		got := second.post("/flows/talk/agui", aguiOf("a", `{"id": "m", "role": "user", "content": "where am I"},
			{"id": "`+parent+`", "role": "assistant", "toolCalls": [{"id": "`+call+`", "type": "function", "function": {"name": "locate", "arguments": "{}"}}]},
			{"id": "t", "role": "tool", "toolCallId": "`+call+`", "content": "{\"city\": \"Oslo\"}"}`, ""))
		if got.status != http.StatusOK || !strings.Contains(got.body, "The desk has  answered.") || !strings.Contains(got.body, `"outcome":{"type":"success"}`) {
			t.Errorf("a tool, %q: %d %s", memory, got.status, got.body)
		}
	}
	first, second := serveReplicas(t)
	waits := first.post("/flows/talk/agui", aguiOf("b", `{"id": "m", "role": "user", "content": "refund order 7"}`, ""))
	interrupt := between(waits.body, `"interrupts":[{"id":"`, `"`)
	resume := `, "resume": [{"interruptId": "` + interrupt + `", "status": "resolved", "payload": {"approved": true}}]`
	got := second.post("/flows/talk/agui", aguiOf("b", "", resume))
	if got.status != http.StatusOK || !strings.Contains(got.body, "The desk has  answered.") {
		t.Errorf("an approval: %d %s", got.status, got.body)
	}
	if again := second.post("/flows/talk/agui", aguiOf("b", "", resume)); again.status != http.StatusConflict || !strings.Contains(again.body, "no_waiting_run") {
		t.Errorf("the same again: %d %s", again.status, again.body)
	}
}

// TestReplicas_SecondRequest checks that a client which answers a run of another server learns
// what the run requests next, by each protocol.
func TestReplicas_SecondRequest(t *testing.T) {
	first, second := serveReplicas(t, "tool_calls: [{name: refund, arguments: {order: $1}}]",
		"tool_calls: [{name: refund, arguments: {order: $1}}, {name: refund, arguments: {order: 8}}]")
	waits := first.post("/flows/talk/stream", chatOf("c", "refund order 7"))
	answer := func(to reply, approval string) reply {
		return second.post("/flows/talk/stream", `{"id": "c", "messages": [{"id": "msg_`+to.header.Get("X-Run-Id")+`", "role": "assistant", "parts": [{"type": "tool-refund",
			"state": "approval-responded", "toolCallId": "x", "approval": {"id": "`+approval+`", "approved": true}}]}]}`)
	}
	next := answer(waits, between(waits.body, `"approvalId":"`, `"`))
	if !strings.Contains(next.body, `"finishReason":"tool-calls"`) || !strings.Contains(next.body, `"input":{"order":8}`) {
		t.Fatalf("the second approval of a chat: %d %s", next.status, next.body)
	}
	if end := answer(waits, between(next.body, `"approvalId":"`, `"`)); !strings.Contains(end.body, "The desk has  answered.") || !strings.Contains(end.body, `"finishReason":"stop"`) {
		t.Errorf("the end of a chat: %d %s", end.status, end.body)
	}

	waits = first.post("/flows/talk/agui", aguiOf("a", `{"id": "m", "role": "user", "content": "refund order 7"}`, ""))
	resume := func(after reply) reply {
		return second.post("/flows/talk/agui", aguiOf("a", "", `, "resume": [{"interruptId": "`+between(after.body, `"interrupts":[{"id":"`, `"`)+`", "status": "resolved", "payload": {"approved": true}}]`))
	}
	next = resume(waits)
	if !strings.Contains(next.body, `"type":"interrupt"`) || !strings.Contains(next.body, `"delta":"{\"order\":8}"`) {
		t.Fatalf("the second interrupt: %d %s", next.status, next.body)
	}
	if end := resume(next); !strings.Contains(end.body, "The desk has  answered.") {
		t.Errorf("the end of a thread: %d %s", end.status, end.body)
	}
}

// TestReplicas_AnswerAfterShutdown checks that a run whose server has ended continues at the server
// that gets the answer, by each protocol.
func TestReplicas_AnswerAfterShutdown(t *testing.T) {
	first, second := serveReplicas(t)
	chat := first.post("/flows/talk/stream", chatOf("c", "refund order 7"))
	thread := first.post("/flows/talk/agui", aguiOf("a", `{"id": "m", "role": "user", "content": "where am I"}`, ""))
	testkit.Must(t, first.own.Shutdown(t.Context()))
	got := second.post("/flows/talk/stream", `{"id": "c", "messages": [{"id": "msg_`+chat.header.Get("X-Run-Id")+`", "role": "assistant", "parts": [{"type": "tool-refund",
		"state": "approval-responded", "toolCallId": "x", "approval": {"id": "`+between(chat.body, `"approvalId":"`, `"`)+`", "approved": true}}]}]}`)
	if !strings.Contains(got.body, "The ") || !strings.Contains(got.body, `"finishReason":"stop"`) {
		t.Errorf("a chat: %d %s", got.status, got.body)
	}
	call := between(thread.body, `"toolCallId":"`, `"`)
	got = second.post("/flows/talk/agui", aguiOf("a", `{"id": "`+between(thread.body, `"parentMessageId":"`, `"`)+`", "role": "assistant", "toolCalls": [{"id": "`+call+`",
		"type": "function", "function": {"name": "locate", "arguments": "{}"}}]}, {"id": "t", "role": "tool", "toolCallId": "`+call+`", "content": "{\"city\": \"Oslo\"}"}`, ""))
	if got.status != http.StatusOK || !strings.Contains(got.body, `"outcome":{"type":"success"}`) {
		t.Errorf("a thread: %d %s", got.status, got.body)
	}
}

// TestReplicas_ResumeAfterShutdown checks that an AG-UI client can answer a run whose server has ended at once, at
// another server, with an input that does not name the run: it has no messages.
func TestReplicas_ResumeAfterShutdown(t *testing.T) {
	for _, memory := range []string{"memory: talks, ", ""} {
		first, second := serveReplicas(t, "memory: talks, ", memory)
		waits := first.post("/flows/talk/agui", aguiOf("b", `{"id": "m", "role": "user", "content": "refund order 7"}`, ""))
		testkit.Must(t, first.own.Shutdown(t.Context()))
		resume := aguiOf("b", "", `, "resume": [{"interruptId": "`+between(waits.body, `"interrupts":[{"id":"`, `"`)+`", "status": "resolved", "payload": {"approved": true}}]`)
		if got := second.post("/flows/talk/agui", resume); got.status != http.StatusOK || !strings.Contains(got.body, `"outcome":{"type":"success"}`) {
			t.Errorf("an approval, %q: %d %s", memory, got.status, got.body)
		}
		if got := second.post("/flows/talk/agui", resume); got.status != http.StatusConflict || !strings.Contains(got.body, "no_waiting_run") {
			t.Errorf("the same again, %q: %d %s", memory, got.status, got.body)
		}
	}
}

// between returns the text behind begin, up to end.
func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	found, _, _ := strings.Cut(rest, end)
	return found
}

// TestReplicas_DeletedSession checks that a session which another server has deleted is in the
// list again when it is used.
func TestReplicas_DeletedSession(t *testing.T) {
	first, second := serveReplicas(t)
	first.post("/flows/talk", `{"message": "hello"}`, "X-Session-Id", "s")
	if got := second.do("DELETE", "/sessions/s", ""); got.status != http.StatusNoContent {
		t.Fatalf("%d %s", got.status, got.body)
	}
	first.post("/flows/talk", `{"message": "hello again"}`, "X-Session-Id", "s")
	for _, s := range []*testServer{first, second} {
		if got := s.do("GET", "/sessions", ""); !strings.Contains(got.body, `"title":"hello again"`) {
			t.Errorf("the list: %s", got.body)
		}
	}
}

// TestReplicas_ResumeStream checks that the stream of a run on another server, which has no
// chunks here, is not one that never ends.
func TestReplicas_ResumeStream(t *testing.T) {
	first, second := serveReplicas(t)
	run := first.post("/flows/talk/stream", chatOf("c", "refund order 7")).header.Get("X-Run-Id")
	if got := second.do("GET", "/flows/talk/stream/c", "", "Last-Event-ID", run+":2"); got.status != http.StatusNoContent {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestReplicas_Regenerate checks that another answer undoes the turn that is still running, on
// the same server or another one: the question is not asked twice.
func TestReplicas_Regenerate(t *testing.T) {
	first, second := serveReplicas(t, "interface: {type: Conversational, examples", "interface: {type: Conversational, on_disconnect: finish, examples")
	for name, other := range map[string]*testServer{"the same server": first, "another server": second} {
		session := strings.ReplaceAll(name, " ", "-")
		run := first.post("/flows/talk", `{"message": "slow"}`, "X-Session-Id", session, "Prefer", "respond-async")
		if run.status != http.StatusAccepted {
			t.Fatal(run.body)
		}
		waitForTurn(t, second, session)
		got := other.post("/flows/talk/stream", `{"id": "`+session+`", "trigger": "regenerate-message", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "slow"}]}]}`)
		if !strings.Contains(got.body, `"finishReason":"stop"`) {
			t.Errorf("%s: %s", name, got.body)
		}
		if history := second.do("GET", "/sessions/"+session+"/messages", ""); strings.Count(history.body, `"status":"in_window"`) != 2 {
			t.Errorf("%s: %s", name, history.body)
		}
	}
}

// waitForTurn waits until a turn of a session is active.
func waitForTurn(t *testing.T, s *testServer, session string) {
	t.Helper()
	for range 100 {
		if got := s.do("GET", "/sessions/"+session, ""); strings.Contains(got.body, `"run":"run_`) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no turn is active")
}

// TestReplicas_ChangesOfSession checks that a session is not changed while a run on another
// server uses it: its messages would come back after they were deleted.
func TestReplicas_ChangesOfSession(t *testing.T) {
	t.Parallel()
	first, second := serveReplicas(t)
	first.post("/flows/talk", `{"message": "hello"}`, "X-Session-Id", "s")
	var run waitingRun
	first.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "s").into(t, &run)
	if got := second.do("GET", "/sessions/s", ""); !strings.Contains(got.body, `"run":"`+run.ID+`"`) {
		t.Errorf("the session: %s", got.body)
	}
	deleted := make(chan reply)
	go func() { deleted <- second.do("DELETE", "/sessions/s", "") }()
	select {
	case got := <-deleted:
		t.Fatalf("deleted during a turn: %d %s", got.status, got.body)
	case <-time.After(200 * time.Millisecond):
	}
	first.post("/runs/"+run.ID+"/cancel", "{}")
	if got := <-deleted; got.status != http.StatusNoContent {
		t.Errorf("after the turn: %d %s", got.status, got.body)
	}
	if got := first.do("GET", "/sessions/s/messages", ""); got.status != http.StatusNotFound {
		t.Errorf("the deleted session: %d %s", got.status, got.body)
	}
}

// TestReplicas_IdempotentErrors checks that a repeated request gets the error of the first one
// from another server, too.
func TestReplicas_IdempotentErrors(t *testing.T) {
	first, second := serveReplicas(t, "max_messages: 40", "max_messages: 40, concurrent_turns: reject",
		"id: complete\n    interface", "id: complete\n    budget: {tokens: 10}\n    interface")
	first.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "s")
	for path, body := range map[string]string{"/flows/talk": `{"message": "hello"}`, "/flows/complete": `[{"question": "one"}, {"question": "two"}]`} {
		want := first.post(path, body, "X-Session-Id", "s", "Idempotency-Key", "k")
		if want.status < http.StatusBadRequest {
			t.Fatalf("%s: %d %s", path, want.status, want.body)
		}
		if got := second.post(path, body, "X-Session-Id", "s", "Idempotency-Key", "k"); got.status != want.status || got.body != want.body {
			t.Errorf("%s: %d %s, at first %d %s", path, got.status, got.body, want.status, want.body)
		}
	}
}
