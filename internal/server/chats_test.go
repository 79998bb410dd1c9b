package server_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// chatOf returns the body of a chat client that sends only the newest message, which is the user's.
func chatOf(id, text string) string {
	return `{"id": "` + id + `", "message": {"id": "m", "role": "user", "parts": [{"type": "text", "text": "` + text + `"}]}}`
}

// serveWith serves testdata/app.qtype.yaml after replacements of its text, which are pairs.
func serveWith(t *testing.T, replace ...string) *testServer {
	t.Helper()
	return serveApp(t, openApp(t, changedApp(t, replace...)), server.Options{})
}

// changedApp writes testdata/app.qtype.yaml after replacements and returns the path.
func changedApp(t *testing.T, replace ...string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/app.qtype.yaml")
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(string(raw))), 0o600))
	return path
}

// TestStream_MessageInsteadOfAnswer checks that a chat goes on when its user writes a
// message instead of answering an approval.
func TestStream_MessageInsteadOfAnswer(t *testing.T) {
	s := serve(t)
	first := s.post("/flows/talk/stream", chatOf("c", "refund order 7"))
	if !strings.Contains(first.body, "tool-approval-request") {
		t.Fatal(first.body)
	}
	second := s.post("/flows/talk/stream", chatOf("c", "never mind"))
	if !strings.Contains(second.body, `"finishReason":"stop"`) || !strings.Contains(second.body, "never") {
		t.Errorf("got %s", second.body)
	}
	if run := s.do("GET", "/runs/"+first.header.Get("X-Run-Id"), ""); !strings.Contains(run.body, `"status":"cancelled"`) {
		t.Errorf("the first run: %s", run.body)
	}
}

// TestStream_RejectedMessage checks that a message which is rejected leaves the run that
// waits as it is: the chat can still answer it.
func TestStream_RejectedMessage(t *testing.T) {
	s := serveWith(t, "max_messages: 40", "max_messages: 40, concurrent_turns: reject")
	first := s.post("/flows/talk/stream", chatOf("c", "refund order 7"))
	second := s.post("/flows/talk/stream", chatOf("c", "never mind"))
	if !strings.Contains(second.body, `"type":"error"`) || !strings.Contains(second.body, "[DONE]") {
		t.Errorf("got %s", second.body)
	}
	var run waitingRun
	s.do("GET", "/runs/"+first.header.Get("X-Run-Id"), "").into(t, &run)
	if len(run.Pending) != 1 {
		t.Fatalf("the first run: %+v", run)
	}
	answer := `{"id": "c", "messages": [{"id": "a", "role": "assistant", "parts": [{"type": "tool-refund", "state": "approval-responded",
		"toolCallId": "x", "approval": {"id": "` + run.Pending[0].ID + `", "approved": true}}]}]}`
	if got := s.post("/flows/talk/stream", answer); !strings.Contains(got.body, "The ") || !strings.Contains(got.body, `"finishReason":"stop"`) {
		t.Errorf("the answer got %d %s", got.status, got.body)
	}
}

// TestStream_TwoClients checks that a run goes on while one of its clients is there.
func TestStream_TwoClients(t *testing.T) {
	s := serve(t)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/flows/talk/stream", strings.NewReader(chatOf("c", "slow")))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	one, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { _ = one.Body.Close() }()
	two, err := http.Get(s.URL + "/flows/talk/stream/c")
	testkit.Must(t, err)
	defer func() { _ = two.Body.Close() }()
	lines := bufio.NewReader(two.Body)
	_, err = lines.ReadString('\n')
	testkit.Must(t, err)
	leave()
	rest, err := io.ReadAll(lines)
	testkit.Must(t, err)
	if !strings.Contains(string(rest), `"delta":"twenty"`) || !strings.Contains(string(rest), `"finishReason":"stop"`) {
		t.Errorf("got %s", rest)
	}
}

// TestStream_ResultIDs checks that clients, which replace parts with equal ids, keep each
// result of a row.
func TestStream_ResultIDs(t *testing.T) {
	got := serve(t).post("/flows/words/stream", `{"texts": ["a", "b", "c"]}`)
	for _, want := range []string{`"id":"row_1","data"`, `"id":"row_1_2","data"`, `"id":"row_1_3","data"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
}

// TestStream_ResumeAfterEnd checks that a client which has read a whole stream does not
// get it again.
func TestStream_ResumeAfterEnd(t *testing.T) {
	s := serve(t)
	for range 50 {
		s.post("/flows/complete/stream", `{"question": "hi"}`, "X-Session-Id", "c")
		if got := s.do("GET", "/flows/complete/stream/c", ""); got.status != http.StatusNoContent {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
}

// TestSessionID_Dots checks that a session cannot have an id with which clients cannot
// find it.
func TestSessionID_Dots(t *testing.T) {
	s := serve(t)
	for _, id := range []string{".", ".."} {
		if got := s.post("/flows/talk", `{"message": "hi"}`, "X-Session-Id", id); got.status != 400 || !strings.Contains(got.body, "invalid_session") {
			t.Errorf("%q got %d %s", id, got.status, got.body)
		}
	}
}

// TestSessions_AGUIThread checks that the list of sessions has the threads of AG-UI clients.
func TestSessions_AGUIThread(t *testing.T) {
	s := serve(t)
	s.post("/flows/talk/agui", aguiOf("monday", `{"id": "m", "role": "user", "content": "good morning"}`, ""))
	if got := s.do("GET", "/sessions", ""); !strings.Contains(got.body, `"id":"monday","title":"good morning","flow":"talk"`) {
		t.Errorf("the list: %s", got.body)
	}
}

// TestStream_RegenerateWhileRunWaits checks that another answer to an earlier message does not
// wait for the run that waits for an approval.
func TestStream_RegenerateWhileRunWaits(t *testing.T) {
	again := `{"id": "c", "trigger": "regenerate-message", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]}`
	for policy, want := range map[string]string{"queue": `"finishReason":"stop"`, "reject": "session_busy"} {
		s := serveWith(t, "max_messages: 40", "max_messages: 40, concurrent_turns: "+policy)
		s.post("/flows/talk/stream", chatOf("c", "hello"))
		first := s.post("/flows/talk/stream", strings.Replace(chatOf("c", "refund order 7"), `"m"`, `"n"`, 1))
		if !strings.Contains(first.body, "tool-approval-request") {
			t.Fatal(first.body)
		}
		if got := s.post("/flows/talk/stream", again); !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", policy, got.status, got.body)
		}
	}
}

// TestResumeStream_OtherFlow checks that the stream of a chat is not continued as that of another
// flow, whose outputs are others.
func TestResumeStream_OtherFlow(t *testing.T) {
	s := serve(t)
	run := s.post("/flows/talk/stream", chatOf("c", "hello")).header.Get("X-Run-Id")
	if got := s.do("GET", "/flows/talk/stream/c", "", "Last-Event-ID", run+":1"); got.status != http.StatusOK {
		t.Errorf("its flow: %d %s", got.status, got.body)
	}
	if got := s.do("GET", "/flows/greet/stream/c", "", "Last-Event-ID", run+":1"); got.status != http.StatusNoContent {
		t.Errorf("another flow: %d %s", got.status, got.body)
	}
}

// The title of a session is what the user has written, not the text of an attached file.
func TestSessions_TitleWithFile(t *testing.T) {
	s := serve(t)
	file := `{"type":"file","mediaType":"text/markdown","url":"data:text/markdown;base64,` + base64.StdEncoding.EncodeToString([]byte("Quarterly figures")) + `"}`
	for session, parts := range map[string]string{"both": file + `,{"type":"text","text":"Summarize this"}`, "file": file} {
		if got := s.post("/flows/talk/stream", `{"id":"`+session+`","messages":[{"id":"1","role":"user","parts":[`+parts+`]}]}`); got.status != http.StatusOK {
			t.Fatalf("%s: %+v", session, got)
		}
	}
	list := s.do("GET", "/sessions", "").body
	if !strings.Contains(list, `"title":"Summarize this"`) || !strings.Contains(list, `"title":"New session"`) || strings.Contains(list, "Quarterly") {
		t.Errorf("sessions: %s", list)
	}
}
