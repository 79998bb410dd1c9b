package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// form returns the body and the Content-Type of a form, with a random boundary.
func form(t *testing.T, pairs ...string) (body, kind string) {
	t.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteField(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// TestForm_Idempotency checks that a form which is sent again gets the first result, and
// another form with its key is an error.
func TestForm_Idempotency(t *testing.T) {
	s := serve(t)
	send := func(name string) reply {
		body, kind := form(t, "name", name, "count", "1")
		return s.post("/flows/typed", body, "Content-Type", kind, "Idempotency-Key", "k")
	}
	first, again, other := send("a"), send("a"), send("b")
	if first.status != 200 || again.body != first.body {
		t.Errorf("got %s, then %s", first.body, again.body)
	}
	if other.status != 409 || !strings.Contains(other.body, "idempotency_key_reused") {
		t.Errorf("another form got %d %s", other.status, other.body)
	}
}

// TestForm_SessionInputs checks that forms set and use the inputs of a session.
func TestForm_SessionInputs(t *testing.T) {
	s := serve(t)
	for _, fields := range [][]string{{"message", "hi", "language", "Frisian"}, {"message", "again"}} {
		body, kind := form(t, fields...)
		if got := s.post("/flows/greet", body, "Content-Type", kind, "X-Session-Id", "s"); got.status != 200 || !strings.Contains(got.body, "Frisian") {
			t.Errorf("%v got %d %s", fields, got.status, got.body)
		}
	}
}

// TestBody_Refused checks bodies that cannot be read as they are.
func TestBody_Refused(t *testing.T) {
	s := serve(t)
	large, kind := form(t, "name", strings.Repeat("x", 33<<20))
	for _, c := range []struct {
		name, body, code string
		status           int
		headers          []string
	}{
		{"gzip", "\x1f\x8b", "unsupported_encoding", 415, []string{"Content-Encoding", "gzip"}},
		{"not UTF-8", "{\"name\": \"\xff\", \"count\": 1}", "malformed_json", 400, nil},
		{"too large", `{"name": "` + strings.Repeat("x", 33<<20) + `"}`, "body_too_large", 413, nil},
		{"form too large", large, "body_too_large", 413, []string{"Content-Type", kind}},
	} {
		if got := s.post("/flows/typed", c.body, c.headers...); got.status != c.status || !strings.Contains(got.body, `"`+c.code+`"`) {
			t.Errorf("%s: got %d %s", c.name, got.status, got.body)
		}
	}
}

// TestBody_Limit checks that the limit of access control is the only one.
func TestBody_Limit(t *testing.T) {
	control, err := access.New(access.Config{Host: "127.0.0.1", Limits: access.Limits{BodyBytes: 40 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s := serveApp(t, openApp(t, "testdata/app.qtype.yaml"), server.Options{Access: control})
	if got := s.post("/flows/typed", `{"name": "`+strings.Repeat("x", 33<<20)+`", "count": 1}`); got.status != 200 {
		t.Errorf("got %d %.200s", got.status, got.body)
	}
}

// TestRows_Pointers checks that an error names the place of its row in the body.
func TestRows_Pointers(t *testing.T) {
	s := serve(t)
	for body, want := range map[string]string{
		`{"name": "a"}`:   "/count",
		`[{"name": "a"}]`: "/0/count",
		`{"rows": [{"name": "a", "count": 1}, {"name": "b"}]}`: "/rows/1/count",
	} {
		if got := s.post("/flows/typed", body); got.status != 422 || !strings.Contains(got.body, `"pointer":"`+want+`"`) {
			t.Errorf("%s got %d %s", body, got.status, got.body)
		}
	}
}

// TestBodies_Wrong checks that wrong bodies of the other resources name the field, and
// nothing of the program.
func TestBodies_Wrong(t *testing.T) {
	s := serve(t)
	var run waitingRun
	s.post("/flows/talk", `{"message": "refund order 7"}`).into(t, &run)
	id := run.Pending[0].ID
	for _, c := range []struct{ path, body, want string }{
		{"/runs/" + run.ID + "/answer", `{"id": "` + id + `", "approved": "yes"}`, `"pointer":"/approved","detail":"expected true or false"`},
		{"/runs/" + run.ID + "/answer", `{"id": "` + id + `", "approved": true, "sure": 1}`, `"pointer":"/sure"`},
		{"/runs/" + run.ID + "/answer", `{"id": "` + id + `", "approved": true} x`, `"malformed_json"`},
		{"/runs/" + run.ID + "/answer", `[]`, `must be a JSON object`},
		{"/flows/talk/stream", `{"messages": 5}`, `"pointer":"/messages","detail":"expected a list"`},
		{"/flows/talk/stream", `{"messages": [{"role": 5}]}`, `"pointer":"/messages/role","detail":"expected a text"`},
		{"/flows/talk/stream", `5`, `must be a JSON object`},
	} {
		if got := s.post(c.path, c.body); got.status/100 != 4 || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "Go ") {
			t.Errorf("%s got %d %s", c.body, got.status, got.body)
		}
	}
	if got := s.do("GET", "/runs?cursor=x", ""); got.status != 400 {
		t.Errorf("a wrong cursor got %d", got.status)
	}
	s.post("/runs/"+run.ID+"/cancel", "")
	if got := s.do("GET", "/metrics", ""); !strings.Contains(got.body, `route="/runs/{run}/answer"`) {
		t.Error("a route has another label")
	}
}

// A program without metrics says so, and answers everything else.
func TestMetrics_Missing(t *testing.T) {
	s := serveCore(t, openApp(t, "testdata/app.qtype.yaml"), server.Options{})
	if got := s.do("GET", "/metrics", ""); got.status != 404 || !strings.Contains(got.body, "this program has no telemetry metrics; the distribution has it: "+parts.Get) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := s.do("GET", "/app", ""); got.status != 200 {
		t.Errorf("/app got %d", got.status)
	}
}

// TestLog_Outage checks that requests which a server refuses while its store is down do not
// fill the log.
func TestLog_Outage(t *testing.T) {
	var text bytes.Buffer
	s := serveApp(t, openApp(t, "testdata/app.qtype.yaml"), server.Options{Store: downStore{memory.NewInProcess()}, Log: slog.New(slog.NewTextHandler(&text, nil))})
	for range 100 {
		if got := s.do("GET", "/readyz", ""); got.status != 503 || !strings.Contains(got.body, "store_unavailable") || strings.Contains(got.body, "db.internal") {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if n := strings.Count(text.String(), "\n"); n == 0 || n > 20 {
		t.Errorf("%d lines were logged: %s", n, text.String())
	}
}

// downStore is a store that cannot be reached.
type downStore struct{ memory.Store }

func (downStore) Head(context.Context, memory.Key) (memory.Head, error) {
	return memory.Head{}, &memory.StoreError{Location: "postgres://db.internal", Problem: store.Unavailable, Message: "down"}
}

// TestRuns_Pages checks that runs which begin while a client reads the list repeat none of it.
func TestRuns_Pages(t *testing.T) {
	s := serve(t)
	want := map[string]bool{}
	for range 5 {
		var run waitingRun
		s.post("/flows/talk", `{"message": "refund order 7"}`).into(t, &run)
		want[run.ID] = true
	}
	got := map[string]bool{}
	for cursor := ""; ; {
		var page struct {
			Runs []waitingRun `json:"runs"`
			Next string       `json:"next"`
		}
		s.do("GET", "/runs?limit=2&cursor="+cursor, "").into(t, &page)
		for _, run := range page.Runs {
			if got[run.ID] || !want[run.ID] {
				t.Errorf("run %s is repeated, or newer than the first page", run.ID)
			}
			got[run.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		s.post("/flows/talk", `{"message": "hello"}`)
		if wrong := s.do("GET", "/runs?cursor="+cursor[:2], ""); wrong.status != http.StatusBadRequest {
			t.Errorf("a shortened cursor got %d", wrong.status)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d of %d runs", len(got), len(want))
	}
}
