package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// results is the body of a request that ran.
type results struct {
	Run    string
	Errors []struct {
		Row           int64
		StepID        string `json:"step_id"`
		ErrorMessage  string `json:"error_message"`
		ExceptionType string `json:"exception_type"`
	}
	Outputs []map[string]json.RawMessage
}

func TestREST_Typed(t *testing.T) {
	s := serve(t)
	const body = `{"name":"Ann","count":3,"ratio":1.5,"done":true,"day":"2026-01-02","at":"2026-01-02T03:04:05Z","order":{"number":7,"note":null},"tags":["a","b"],"photo":"data:image/png;base64,AP8="}`
	got := s.post("/flows/typed", body)
	var r results
	got.into(t, &r)
	if got.status != http.StatusOK || len(r.Outputs) != 1 {
		t.Fatal(got)
	}
	for name, want := range map[string]string{"name": `"Ann"`, "count": "3", "ratio": "1.5", "done": "true", "day": `"2026-01-02"`, "at": `"2026-01-02T03:04:05Z"`,
		"order": `{"number":7,"note":null}`, "tags": `["a","b"]`, "photo": `{"base64":"AP8="}`} {
		if string(r.Outputs[0][name]) != want {
			t.Errorf("%s is %s, want %s", name, r.Outputs[0][name], want)
		}
	}
	// Optional inputs may be missing or null.
	for _, body := range []string{`{"name":"Ann","count":3}`, `{"name":"Ann","count":3,"ratio":null,"tags":null}`} {
		if got := s.post("/flows/typed", body); got.status != http.StatusOK || !strings.Contains(got.body, `"ratio":null`) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// Media of clients are checked by their content. Paths are not read, and addresses are
// fetched only from allowed hosts.
func TestREST_Media(t *testing.T) {
	s := serve(t)
	for photo, want := range map[string]string{
		`"data:image/png;base64,iVBORw0KGgo="`: `"photo":{"base64":"iVBORw0KGgo="}`,
		`"iVBORw0KGgo="`:                       `"photo":{"base64":"iVBORw0KGgo="}`,
		`"data:text/plain,hello"`:              `/photo: expected an image, found the text \"hello\"`,
		`"/etc/hostname"`:                      `/photo: /etc/hostname: files cannot be named here: pass the content`,
		`{"path":"/etc/hostname"}`:             `"pointer":"/photo"`,
		`"https://example.com/a.png"`:          "the server does not fetch attachments from this host",
		`"http://169.254.169.254/latest"`:      "the server fetches attachments only over https",
	} {
		got := s.post("/flows/typed", `{"name":"Ann","count":3,"photo":`+photo+`}`)
		if ok := got.status == http.StatusOK; !strings.Contains(got.body, want) || ok != strings.HasPrefix(want, `"photo"`) {
			t.Errorf("%s: %d %s", photo, got.status, got.body)
		}
	}
}

// Each wrong field is named, all in one answer.
func TestREST_WrongFields(t *testing.T) {
	s := serve(t)
	const body = `{"count":"many","ratio":"x","done":"yes","day":"2026-13-02","at":"z","order":{"note":1},"tags":["a",2],"photo":{"base64":"*"}}`
	var p struct {
		Code   string
		Errors []struct{ Pointer, Detail string }
	}
	got := s.post("/flows/typed", body)
	got.into(t, &p)
	var pointers []string
	for _, e := range p.Errors {
		pointers = append(pointers, e.Pointer)
	}
	want := "/name /count /ratio /done /day /at /order/number /tags/1 /photo/base64"
	if got.status != http.StatusUnprocessableEntity || p.Code != "invalid_input" || strings.Join(pointers, " ") != want {
		t.Errorf("%d %s", got.status, got.body)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("content type %s", kind)
	}
}

func TestREST_Errors(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"unknown flow", "POST", "/flows/tpyed", `{}`, nil, 404, "unknown_flow"},
		{"unknown resource", "GET", "/nothing", "", nil, 404, "not_found"},
		{"method", "DELETE", "/flows/typed", "", nil, 405, "method_not_allowed"},
		{"malformed", "POST", "/flows/typed", `{"name":`, nil, 400, "malformed_json"},
		{"empty body", "POST", "/flows/typed", "", []string{"Content-Type", "application/json"}, 400, "malformed_json"},
		{"not an object", "POST", "/flows/typed", `"x"`, nil, 422, "invalid_request"},
		{"row of another type", "POST", "/flows/typed", `[1]`, nil, 422, "invalid_request"},
		{"media type", "POST", "/flows/typed", `x`, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"form without boundary", "POST", "/flows/typed", `x`, []string{"Content-Type", "multipart/form-data"}, 400, "malformed_form"},
		{"broken form", "POST", "/flows/typed", `x`, []string{"Content-Type", "multipart/form-data; boundary=b"}, 400, "malformed_form"},
		{"session", "POST", "/flows/typed", `{}`, []string{"X-Session-Id", strings.Repeat("x", 300)}, 400, "invalid_session"},
		{"unknown run", "GET", "/runs/run_x", "", nil, 404, "unknown_run"},
		{"limit", "GET", "/runs?limit=0", "", nil, 400, "invalid_parameter"},
		{"restricted flow", "POST", "/flows/restricted", `{"x":"y"}`, nil, 403, "not_allowed"},
		{"too many rows", "POST", "/flows/constant", "[" + strings.Repeat("{},", 10_000) + "{}]", nil, 413, "too_many_rows"},
		{"too large", "POST", "/flows/complete", `{"question":"` + strings.Repeat("x", 33<<20) + `"}`, nil, 413, "body_too_large"},
	} {
		got := s.do(tt.method, tt.path, tt.body, tt.headers...)
		var p struct {
			Status int
			Code   string
		}
		got.into(t, &p)
		if got.status != tt.status || p.Status != tt.status || p.Code != tt.code {
			t.Errorf("%s: %d %.300s, want %d %s", tt.name, got.status, got.body, tt.status, tt.code)
		}
	}
	if got := s.post("/flows/tpyed", `{}`); !strings.Contains(got.body, `did you mean \"typed\"?`) {
		t.Errorf("no suggestion: %s", got.body)
	}
	if got := s.do("DELETE", "/flows/typed", ""); got.header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
}

// Several rows are one request; failed ones are listed next to the outputs.
func TestREST_Rows(t *testing.T) {
	s := serve(t)
	for _, body := range []string{`[{"question":"one"},{"question":"fail"},{"question":"three"}]`, `{"rows":[{"question":"one"},{"question":"fail"},{"question":"three"}]}`} {
		var r results
		s.post("/flows/complete", body).into(t, &r)
		if len(r.Outputs) != 2 || len(r.Errors) != 1 || r.Errors[0].Row != 2 || r.Errors[0].StepID != "finish" || r.Errors[0].ExceptionType != "HTTP500Error" ||
			!strings.Contains(r.Errors[0].ErrorMessage, "the model is tired") {
			t.Errorf("%+v", r)
		}
		if got := string(r.Outputs[1]["metadata"]); !strings.HasPrefix(got, `{"row":3`) {
			t.Errorf("metadata %s", got)
		}
	}
	// The pointer of a wrong field names the row.
	if got := s.post("/flows/complete", `[{"question":"x"},{"question":5}]`); !strings.Contains(got.body, `"pointer":"/1/question"`) {
		t.Error(got.body)
	}
	// One row may become several, or none.
	var r results
	s.post("/flows/words", `{"texts":["a","b","c"]}`).into(t, &r)
	if len(r.Outputs) != 3 || string(r.Outputs[2]["word"]) != `"c"` {
		t.Errorf("%+v", r)
	}
	got := s.post("/flows/words", `{"texts":[]}`)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"outputs":[]`) {
		t.Errorf("%+v", got)
	}
	if got := s.post("/flows/constant", `{}`); !strings.Contains(got.body, `"prompt":"hello"`) {
		t.Errorf("%+v", got)
	}
}

// A form has texts and files.
func TestREST_Form(t *testing.T) {
	s := serve(t)
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	_ = form.WriteField("name", "Ann")
	_ = form.WriteField("count", "3")
	_ = form.WriteField("tags", "a")
	_ = form.WriteField("tags", "b")
	file, _ := form.CreateFormFile("photo", "x.png")
	_, _ = file.Write([]byte{0, 255})
	_ = form.Close()
	got := s.post("/flows/typed", b.String(), "Content-Type", form.FormDataContentType())
	if got.status != http.StatusOK || !strings.Contains(got.body, `"count":3`) || !strings.Contains(got.body, `"tags":["a","b"]`) || !strings.Contains(got.body, `"photo":{"base64":"AP8="}`) {
		t.Errorf("%+v", got)
	}
	b.Reset()
	form = multipart.NewWriter(&b)
	_ = form.WriteField("count", "many")
	_ = form.Close()
	if got := s.post("/flows/typed", b.String(), "Content-Type", form.FormDataContentType()); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `"/count"`) || !strings.Contains(got.body, `"/name"`) {
		t.Errorf("%+v", got)
	}
}

// A session is a conversation; its header may have the name of QType (Python).
func TestREST_Session(t *testing.T) {
	s := serve(t)
	for i, name := range []string{"X-Session-Id", "session_id", "X-Session-Id"} {
		got := s.post("/flows/talk", fmt.Sprintf(`{"message":"turn %d"}`, i), name, "c-1")
		if want := fmt.Sprintf("I received %d message", 2*i+1); !strings.Contains(got.body, want) || got.header.Get("X-Session-Id") != "c-1" {
			t.Errorf("turn %d: %+v", i, got)
		}
	}
	// Without one, each request is a conversation.
	first, second := s.post("/flows/talk", `{"message":"hi"}`), s.post("/flows/talk", `{"message":{"role":"user","blocks":[{"type":"text","content":"hi"}]}}`)
	if !strings.Contains(second.body, "I received 1 message") || first.header.Get("X-Session-Id") == second.header.Get("X-Session-Id") {
		t.Errorf("%+v %+v", first, second)
	}
}

func TestREST_IdempotencyKey(t *testing.T) {
	s := serve(t)
	first := s.post("/flows/talk", `{"message":"pay"}`, "Idempotency-Key", "k1", "X-Session-Id", "pay")
	second := s.post("/flows/talk", `{"message":"pay"}`, "Idempotency-Key", "k1", "X-Session-Id", "pay")
	if first.status != http.StatusOK || first.body != second.body {
		t.Errorf("%+v\n%+v", first, second)
	}
	if got := s.post("/flows/talk", `{"message":"other"}`, "Idempotency-Key", "k1", "X-Session-Id", "pay"); got.status != http.StatusConflict || !strings.Contains(got.body, "idempotency_key_reused") {
		t.Errorf("%+v", got)
	}
	// Without a session the key finds the session of the first request.
	first, second = s.post("/flows/talk", `{"message":"x"}`, "Idempotency-Key", "k2"), s.post("/flows/talk", `{"message":"x"}`, "Idempotency-Key", "k2")
	if first.body != second.body || first.header.Get("X-Session-Id") != second.header.Get("X-Session-Id") {
		t.Errorf("%+v\n%+v", first, second)
	}
	if got := s.post("/flows/talk", `{"message":"how many"}`, "X-Session-Id", "pay"); !strings.Contains(got.body, "I received 3 messages") {
		t.Errorf("the second request added messages: %s", got.body)
	}
}

// The same key at the same time runs once.
func TestREST_IdempotencyKeyAtOnce(t *testing.T) {
	s := serve(t)
	var wait sync.WaitGroup
	bodies := make([]string, 8)
	for i := range bodies {
		wait.Go(func() {
			bodies[i] = s.post("/flows/talk", `{"message":"once"}`, "Idempotency-Key", "k", "X-Session-Id", "once").body
		})
	}
	wait.Wait()
	for _, b := range bodies {
		if b != bodies[0] {
			t.Errorf("%s\n%s", b, bodies[0])
		}
	}
	if got := s.post("/flows/talk", `{"message":"how many"}`, "X-Session-Id", "once"); !strings.Contains(got.body, "I received 3 messages") {
		t.Error(got.body)
	}
}

// runState is the body of a run.
type runState struct {
	ID, Flow, Session, Status string
	Pending                   []struct {
		ID, Kind, Tool string
		Arguments      json.RawMessage
	}
	Errors, Outputs []json.RawMessage
}

func TestREST_Async(t *testing.T) {
	s := serve(t)
	got := s.post("/flows/complete", `[{"question":"one"},{"question":"two"}]`, "Prefer", "respond-async")
	var run runState
	got.into(t, &run)
	if got.status != http.StatusAccepted || got.header.Get("Location") != "../runs/"+run.ID {
		t.Fatalf("%+v", got)
	}
	events := s.do("GET", "/runs/"+run.ID+"/events", "")
	for _, want := range []string{"event: run.started\n", "event: text.delta\n", "event: row.finished\n", "event: run.finished\n", "id: " + run.ID + ":1\n"} {
		if !strings.Contains(events.body, want) {
			t.Errorf("no %q in\n%s", want, events.body)
		}
	}
	last := strings.Count(events.body, "\nevent: ")
	rest := s.do("GET", "/runs/"+run.ID+"/events", "", "Last-Event-ID", fmt.Sprintf("%s:%d", run.ID, last-1))
	if strings.Count(rest.body, "event: ") != 1 || !strings.Contains(rest.body, "run.finished") {
		t.Errorf("rest: %s", rest.body)
	}
	s.do("GET", "/runs/"+run.ID, "").into(t, &run)
	if run.Status != "succeeded" || len(run.Outputs) != 2 {
		t.Errorf("%+v", run)
	}
	if list := s.do("GET", "/runs?flow=complete&status=succeeded", ""); !strings.Contains(list.body, run.ID) {
		t.Error(list.body)
	}
}

// A run that waits is a resource: its client answers, and reads the result.
func TestREST_Approval(t *testing.T) {
	s := serve(t)
	for approved, want := range map[string]string{"true": "The desk has  answered.", "false": "The desk has  answered."} {
		got := s.post("/flows/talk", `{"message":"refund order 7"}`)
		var run runState
		got.into(t, &run)
		if got.status != http.StatusAccepted || run.Status != "waiting" || len(run.Pending) != 1 || run.Pending[0].Tool != "refund" {
			t.Fatalf("%+v", got)
		}
		request := run.Pending[0].ID
		for body, status := range map[string]int{`{}`: 422, `{"id":"x","approved":true}`: 404, `{"id":"` + request + `"}`: 422, `{"id":1}`: 422, `{`: 400} {
			if got := s.post("/runs/"+run.ID+"/answer", body); got.status != status {
				t.Errorf("answer %s: %+v", body, got)
			}
		}
		if got := s.post("/runs/"+run.ID+"/answer", `{"id":"`+request+`","approved":`+approved+`}`); got.status != http.StatusOK {
			t.Fatalf("%+v", got)
		}
		events := s.do("GET", "/runs/"+run.ID+"/events", "")
		s.do("GET", "/runs/"+run.ID, "").into(t, &run)
		if run.Status != "succeeded" || len(run.Outputs) != 1 || !strings.Contains(string(run.Outputs[0]), want) || !strings.Contains(events.body, "request.answered") {
			t.Errorf("%+v", run)
		}
		if got := s.post("/runs/"+run.ID+"/answer", `{"id":"`+request+`","approved":true}`); got.status != http.StatusConflict && got.status != http.StatusNotFound {
			t.Errorf("second answer: %+v", got)
		}
	}
}

func TestREST_Cancel(t *testing.T) {
	s := serve(t)
	var run runState
	s.post("/flows/complete", `{"question":"slow"}`, "Prefer", "respond-async").into(t, &run)
	if got := s.post("/runs/"+run.ID+"/cancel", ""); got.status != http.StatusAccepted {
		t.Fatalf("%+v", got)
	}
	s.do("GET", "/runs/"+run.ID+"/events", "")
	s.do("GET", "/runs/"+run.ID, "").into(t, &run)
	if run.Status != "cancelled" {
		t.Errorf("%+v", run)
	}
}

// A call does not block others: the recording 98 of QType (Python) shows that it does there.
func TestREST_SlowCallsBlockNothing(t *testing.T) {
	s := serve(t)
	var slow sync.WaitGroup
	enough := make(chan struct{})
	for range 64 {
		slow.Go(func() {
			for {
				if got := s.post("/flows/complete", `{"question":"slow"}`); got.status != http.StatusOK {
					t.Errorf("%+v", got)
				}
				select {
				case <-enough:
					return
				default:
				}
			}
		})
	}
	for range 10 {
		if got := s.do("GET", "/healthz", ""); got.status != http.StatusOK {
			t.Errorf("%+v", got)
		}
		if got := s.post("/flows/constant", `{}`); got.status != http.StatusOK {
			t.Errorf("%+v", got)
		}
	}
	close(enough)
	slow.Wait()
}

// A client that goes away ends its run, unless the flow finishes without it.
func TestStream_Disconnect(t *testing.T) {
	s := serve(t)
	for flow, want := range map[string]string{"talk": "cancelled", "greet": "succeeded"} {
		ctx, cancel := context.WithCancel(t.Context())
		body := `{"id":"gone","language":"Dutch","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"slow"}]}]}`
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/flows/"+flow+"/stream", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		id := resp.Header.Get("X-Run-Id")
		_, _ = resp.Body.Read(make([]byte, 100))
		cancel()
		_ = resp.Body.Close()
		events := s.do("GET", "/runs/"+id+"/events", "")
		if !strings.Contains(events.body, `"status":"`+want+`"`) {
			t.Errorf("%s: no status %s in\n%s", flow, want, events.body)
		}
	}
}

// Below a prefix of a Go program, the server works and its locations are right.
func TestServer_BelowPrefix(t *testing.T) {
	app := openApp(t, "testdata/app.qtype.yaml")
	s := serveApp(t, app, server.Options{})
	s.Config.Handler = http.StripPrefix("/assistant", s.own)
	if page := s.do("GET", "/assistant/docs", "").body; !strings.Contains(page, s.URL+"/assistant/flows/constant<") {
		t.Errorf("the page does not name the server: %s", page)
	}
	if got := s.do("GET", "/assistant/openapi.json", "").body; !strings.Contains(got, `"url": "./"`) {
		t.Error("the address of the API is not relative to that of its description")
	}
	got := s.post("/assistant/flows/constant", `{}`, "Prefer", "respond-async")
	if got.status != http.StatusAccepted || !strings.HasPrefix(got.header.Get("Location"), "../runs/") {
		t.Errorf("%+v", got)
	}
}
