package server_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/runtime"
)

// closing reports when an application closes its store.
type closing struct {
	memory.Store
	closed chan struct{}
}

func (c closing) Close() error {
	defer close(c.closed)
	return c.Store.Close()
}

// waitingRun is a run that waits for its client.
type waitingRun struct {
	ID      string
	Status  string
	Pending []struct{ ID string }
}

// open sends a GET request and returns the function that reads the rest of the response.
func (s *testServer) open(path string) func() string {
	s.t.Helper()
	resp, err := http.Get(s.URL + path)
	if err != nil {
		s.t.Fatal(err)
	}
	return func() string {
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			s.t.Error(err)
		}
		return string(raw)
	}
}

// openStored returns the application of testdata/app.qtype.yaml with its own connection
// to a file, and what reports that it is closed.
func openStored(t *testing.T, path string) (*runtime.App, chan struct{}) {
	t.Helper()
	store, err := sqlite.Open(path)
	testkit.Must(t, err)
	c := closing{store, make(chan struct{})}
	app, err := qtype.Open(t.Context(), "testdata/app.qtype.yaml", qtype.WithStore(c))
	testkit.Must(t, err)
	return app, c.closed
}

// TestSwap_State checks that sessions, runs and session inputs outlive the application
// that wrote them.
func TestSwap_State(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	first, closed := openStored(t, path)
	s := serveApp(t, first, server.Options{})
	s.post("/flows/talk", `{"message": "Hello"}`, "X-Session-Id", "a")
	s.post("/flows/greet", `{"message": "Hello", "language": "Frisian"}`, "X-Session-Id", "b")
	waiting := s.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "c")
	second, _ := openStored(t, path)
	t.Cleanup(func() { _ = second.Close(context.Background()) })
	s.own.Swap(second)

	var run waitingRun
	waiting.into(t, &run)
	if got := s.post("/runs/"+run.ID+"/answer", `{"id": "`+run.Pending[0].ID+`", "approved": true}`); got.status != 200 {
		t.Errorf("the answer got %d %s", got.status, got.body)
	}
	<-closed // the run was the last user of the first application
	for path, want := range map[string]string{"/sessions": `"id":"a"`, "/sessions/a/messages": "Hello", "/readyz": "ok", "/runs/" + run.ID: "succeeded"} {
		if got := s.do("GET", path, ""); got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.post("/flows/greet", `{"message": "Again"}`, "X-Session-Id", "b"); got.status != 200 || !strings.Contains(got.body, "Frisian") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestSwap_OpenRequest checks that an application is not closed during a request that
// reads its store.
func TestSwap_OpenRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	first, closed := openStored(t, path)
	s := serveApp(t, first, server.Options{Heartbeat: 10 * time.Millisecond})
	var run waitingRun
	s.post("/flows/talk", `{"message": "refund order 7"}`).into(t, &run)
	rest := s.open("/runs/" + run.ID + "/events")
	second, _ := openStored(t, path)
	t.Cleanup(func() { _ = second.Close(context.Background()) })
	s.own.Swap(second)
	s.post("/runs/"+run.ID+"/cancel", "")
	if text := rest(); !strings.Contains(text, "run.finished") {
		t.Errorf("the stream ended with %s", text)
	}
	<-closed
}

// TestWatch_MissingFile checks that a file which was missing is read when it is back,
// though the document was not changed meanwhile.
func TestWatch_MissingFile(t *testing.T) {
	dir := t.TempDir()
	document, part := filepath.Join(dir, "app.yaml"), filepath.Join(dir, "part.txt")
	for _, path := range []string{document, part} {
		testkit.Must(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	s := serve(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	load := func(context.Context) (*runtime.App, []string, *server.ReloadError) {
		if _, err := os.Stat(part); err != nil {
			return nil, []string{document}, &server.ReloadError{Message: "missing"}
		}
		return openApp(t, "testdata/app.qtype.yaml"), []string{document, part}, nil
	}
	reports, ended := make(chan *server.ReloadError, 10), make(chan struct{})
	go func() {
		defer close(ended)
		s.own.Watch(ctx, []string{document, part}, load, func(e *server.ReloadError) { reports <- e })
	}()
	for begun := false; !begun; { // Watch may not have looked at the files yet
		testkit.Must(t, os.WriteFile(document, []byte(time.Now().String()), 0o600))
		select {
		case e := <-reports:
			begun = e == nil
		case <-time.After(time.Second):
		}
	}
	testkit.Must(t, os.Remove(part))
	if e := <-reports; e == nil {
		t.Error("the document was loaded without its file")
	}
	testkit.Must(t, os.WriteFile(part, []byte("y"), 0o600))
	if e := <-reports; e != nil {
		t.Error(e.Message)
	}
	stop()
	<-ended
}

// TestSwap_Turns checks that a turn waits for that of the session which began before a reload.
func TestSwap_Turns(t *testing.T) {
	store := storetest.Shared(memory.NewInProcess())
	open := func() *runtime.App { return openApp(t, "testdata/app.qtype.yaml", qtype.WithStore(store)) }
	s := serveApp(t, open(), server.Options{Reload: true})
	var run waitingRun
	s.post("/flows/talk", `{"message": "refund order 7"}`, "X-Session-Id", "s").into(t, &run)
	s.own.Swap(open())
	second := make(chan reply)
	go func() { second <- s.post("/flows/talk", `{"message": "hello"}`, "X-Session-Id", "s") }()
	select {
	case got := <-second:
		t.Fatalf("the second turn did not wait: %d %s", got.status, got.body)
	case <-time.After(200 * time.Millisecond):
	}
	s.post("/runs/"+run.ID+"/answer", `{"id": "`+run.Pending[0].ID+`", "approved": true}`)
	if got := <-second; !strings.Contains(got.body, "5 messages") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
