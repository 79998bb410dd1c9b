package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a request that a server received.
type call struct {
	Line string // method, path as sent, query
	Body string
}

type server struct {
	*httptest.Server
	mu      sync.Mutex
	calls   []call
	headers []http.Header
}

func serve(t *testing.T, answers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Method + " " + r.URL.RequestURI(), string(raw)})
		s.headers = append(s.headers, r.Header)
		n := min(len(s.calls), len(answers)) - 1
		s.mu.Unlock()
		answers[n](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) seen() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func answer(code int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func variable(id, typ string) *spec.Variable {
	t, err := spec.ParseType(typ)
	if err != nil {
		panic(err)
	}
	return &spec.Variable{ID: id, Type: t}
}

// declare makes an API tool for the server; change sets what the test is about.
func (s *server) declare(t *testing.T, change func(*spec.APITool)) tool.Tool {
	t.Helper()
	d := &spec.APITool{ToolBase: spec.ToolBase{ID: "find", Name: "find_order", Description: "Finds an order."}, Endpoint: s.URL + "/orders", AllowPrivate: true}
	change(d)
	made, err := tool.NewAPI(d, tool.Options{HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAPI_Arguments(t *testing.T) {
	day := time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC)
	tests := map[string]struct {
		method, path       string
		inputs, parameters []*spec.Variable
		args               map[string]any
		want               call
	}{
		"get": {"", "/orders?v=1", []*spec.Variable{variable("q", "text"), variable("n", "int")}, []*spec.Variable{variable("page", "int?")},
			map[string]any{"q": "a&b c=d", "n": json.Number("12345678901234567890"), "page": nil}, call{"GET /orders?v=1&n=12345678901234567890&q=a%26b+c%3Dd", ""}},
		"lists, booleans, dates, bytes, records": {"get", "/orders", []*spec.Variable{variable("a", "list[text]"), variable("b", "boolean"), variable("c", "datetime"), variable("d", "bytes"), variable("e", "Order"), variable("f", "float")}, nil,
			map[string]any{"a": []any{"x", nil, 2}, "b": true, "c": day, "d": []byte{0xff}, "e": map[string]any{"id": 1}, "f": 1.5},
			call{"GET /orders?a=x&a=2&b=true&c=2026-11-21T07%3A30%3A00Z&d=%2Fw%3D%3D&e=%7B%22id%22%3A1%7D&f=1.5", ""}},
		"delete": {"DELETE", "/orders", []*spec.Variable{variable("id", "int")}, nil, map[string]any{"id": 7}, call{"DELETE /orders?id=7", ""}},
		"post": {"POST", "/orders", []*spec.Variable{variable("q", "text"), variable("when", "datetime"), variable("opt", "text?"), variable("null", "text")}, []*spec.Variable{variable("dry", "boolean")},
			map[string]any{"q": "<b>", "when": day, "null": nil, "dry": false}, call{"POST /orders?dry=false", `{"null":null,"q":"<b>","when":"2026-11-21T07:30:00Z"}`}},
		"put without arguments": {"PUT", "/orders", nil, nil, nil, call{"PUT /orders", `{}`}},
		"path": {"GET", "/shops/{shop}/orders/{id}.json?sort={sort}", []*spec.Variable{variable("shop", "text"), variable("id", "int"), variable("sort", "text"), variable("q", "text")}, nil,
			map[string]any{"shop": "a/b?c#d%2f é", "id": 7, "sort": "x&y", "q": "z"}, call{"GET /shops/a%2Fb%3Fc%23d%252f%20%C3%A9/orders/7.json?sort=x%26y&q=z", ""}},
		"path and body": {"PATCH", "/orders/{id}", []*spec.Variable{variable("id", "int"), variable("state", "text")}, nil,
			map[string]any{"id": 7, "state": "sent"}, call{"PATCH /orders/7", `{"state":"sent"}`}},
		"three dots": {"GET", "/orders/{id}", []*spec.Variable{variable("id", "text")}, nil, map[string]any{"id": "..."}, call{"GET /orders/...", ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer(200, "application/json", "{}"))
			m := s.declare(t, func(d *spec.APITool) {
				d.Method, d.Endpoint, d.Inputs, d.Parameters = tt.method, s.URL+tt.path, tt.inputs, tt.parameters
			})
			if _, err := m.Call(t.Context(), tt.args); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]call{tt.want}, s.seen()); d != "" {
				t.Error(d)
			}
			if got := s.headers[0].Get("Content-Type"); (got == "application/json") != (tt.want.Body != "") {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

func TestAPI_InvalidArguments(t *testing.T) {
	s := serve(t, answer(200, "application/json", "{}"))
	m := s.declare(t, func(d *spec.APITool) {
		d.Endpoint = s.URL + "/orders/{id}/.{kind}"
		d.Inputs = []*spec.Variable{variable("id", "text"), variable("kind", "text"), variable("f", "float?")}
	})
	with := func(id, kind any, more ...any) map[string]any {
		args := map[string]any{"id": id, "kind": kind}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
	tests := []struct {
		args map[string]any
		want string
	}{
		{with("..", "x"), "tool find: argument id: must not hold . or .. as a part of the path"},
		{with("../../admin", "x"), "tool find: argument id: must not hold . or .. as a part of the path"},
		{with(`a\..\b`, "x"), "tool find: argument id: must not hold . or .. as a part of the path"},
		{with(".", "x"), "tool find: argument id: must not hold . or .. as a part of the path"},
		{with("a", "."), "tool find: argument kind: must not hold . or .. as a part of the path"},
		{with("", "x"), "tool find: argument id: must not be empty: it is part of the path"},
		{with(nil, "x"), "tool find: argument id: must not be empty: it is part of the path"},
		{map[string]any{"id": "a"}, "tool find: argument kind: is missing"},
		{with("a", "x", "color", "red"), "tool find: argument color: is not an argument of this tool"},
		{with("a", "x", "f", func() {}), "tool find: argument f: cannot be encoded as JSON"},
	}
	for _, tt := range tests {
		_, err := m.Call(t.Context(), tt.args)
		var bad *tool.ArgumentError
		if !errors.As(err, &bad) || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	if len(s.seen()) != 0 {
		t.Errorf("the server was called: %v", s.seen())
	}
}

func TestAPI_Results(t *testing.T) {
	tests := map[string]struct {
		kind, body string
		want       any
	}{
		"object":            {"application/json", ` {"id": 12345678901234567890, "ok": true, "x": null} `, map[string]any{"id": json.Number("12345678901234567890"), "ok": true, "x": nil}},
		"problem type":      {"application/vnd.shop+json; charset=utf-8", `[1.50]`, []any{json.Number("1.50")}},
		"JSON without name": {"", `"text"`, "text"},
		"JSON called text":  {"text/plain", `{"a":"b"}`, map[string]any{"a": "b"}},
		"text":              {"text/plain; charset=utf-8", "007\n", "007\n"},
		"text in braces":    {"text/plain", "{not json", "{not json"},
		"page":              {"text/html", "<p>hi</p>", "<p>hi</p>"},
		"nothing":           {"application/json", "", nil},
		"blanks":            {"text/plain", "\n", "\n"},
		"byte order mark":   {"application/json", "\xef\xbb\xbf{}", map[string]any{}},
		"bytes":             {"image/png", "\x89PNG\xff", []byte("\x89PNG\xff")},
		"two values":        {"application/octet-stream", "1 2", "1 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer(200, tt.kind, tt.body))
			got, err := s.declare(t, func(*spec.APITool) {}).Call(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAPI_Failures(t *testing.T) {
	tests := map[string]struct {
		method string
		answer []http.HandlerFunc
		want   string // empty: success
		calls  int
	}{
		"404":                     {"GET", []http.HandlerFunc{answer(404, "application/json", `{"detail":"no order 7"}`)}, `HTTP 404: {"detail":"no order 7"}`, 1},
		"400, long":               {"GET", []http.HandlerFunc{answer(400, "text/plain", strings.Repeat("a\n", 5000))}, "HTTP 400: " + strings.TrimSpace(strings.Repeat("a ", 300)) + "…", 1},
		"500 page":                {"GET", []http.HandlerFunc{answer(500, "text/html", "<html>")}, "HTTP 500: Internal Server Error", 1},
		"502 page of a proxy":     {"POST", []http.HandlerFunc{answer(502, "text/html", "<html><title>502 Bad &amp; gone: http://ann:hunter2@shop</title>")}, "HTTP 502: 502 Bad & gone: http://shop", 1},
		"br":                      {"GET", []http.HandlerFunc{answer(200, "text/plain", "\x0b", "Content-Encoding", "br")}, "the answer has the content coding br, which was not requested", 1},
		"utf-8 as a coding":       {"GET", []http.HandlerFunc{answer(200, "text/plain", "x", "Content-Encoding", "utf-8")}, "", 1},
		"503 every time":          {"GET", []http.HandlerFunc{answer(503, "", "", "Retry-After", "0.001")}, "HTTP 503: Service Unavailable, tried 3 times", 3},
		"429, then well":          {"PUT", []http.HandlerFunc{answer(429, "", "", "Retry-After", "0.001"), answer(200, "", "")}, "", 2},
		"503 is not posted again": {"POST", []http.HandlerFunc{answer(503, "", "")}, "HTTP 503: Service Unavailable", 1},
		"long Retry-After":        {"GET", []http.HandlerFunc{answer(429, "", "", "Retry-After", "3600")}, "HTTP 429: Too Many Requests", 1},
		"not JSON":                {"GET", []http.HandlerFunc{answer(200, "application/json", "<html>")}, "the answer has the type application/json but is not JSON: <html>", 1},
		"not modified":            {"GET", []http.HandlerFunc{answer(304, "", "")}, "HTTP 304: Not Modified", 1},
		"cut off":                 {"GET", []http.HandlerFunc{answer(200, "", "short", "Content-Length", "1000")}, "the connection was closed before the answer was complete", 1},
		"round and round":         {"GET", []http.HandlerFunc{answer(302, "", "", "Location", "/orders")}, "stopped after 10 redirects", 10},
		"points to a file":        {"GET", []http.HandlerFunc{answer(302, "", "", "Location", "file:///etc/passwd")}, "redirect to an address that is not http or https", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer...)
			m := s.declare(t, func(d *spec.APITool) {
				d.Method, d.Endpoint = tt.method, strings.Replace(s.URL, "://", "://ann:hunter2@", 1)+"/orders?key=hunter3"
			})
			_, err := m.Call(t.Context(), nil)
			want := fmt.Sprintf("tool find: %s %s/orders: %s", tt.method, s.URL, tt.want)
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if n := len(s.seen()); n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
		})
	}
}

// A server that knows the key of a call acts once: a call may be retried with any method, and has the same key when a run repeats it.
func TestAPI_IdempotencyHeader(t *testing.T) {
	var keys []string
	keyed := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			next(w, r)
		}
	}
	s := serve(t, keyed(answer(503, "", "", "Retry-After", "0.001")), keyed(answer(200, "", "")))
	m := s.declare(t, func(d *spec.APITool) {
		d.Method, d.Endpoint, d.IdempotencyHeader = "POST", s.URL+"/orders", "Idempotency-Key"
	})
	call := func(ctx context.Context) {
		if _, err := m.Call(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	call(t.Context())
	call(t.Context())
	repeated := tool.WithCaller(t.Context(), tool.Caller{Repeat: "one"})
	call(repeated)
	call(repeated)
	if len(keys) != 5 || len(keys[0]) < 20 || keys[1] != keys[0] || keys[2] == keys[0] || keys[3] != "one" || keys[4] != "one" {
		t.Errorf("got %q", keys)
	}
}

func TestAPI_TimeoutAndCancel(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := s.declare(t, func(d *spec.APITool) { d.Timeout = spec.Duration(30 * time.Millisecond) }).Call(t.Context(), nil)
	if want := "tool find: GET " + s.URL + "/orders: no complete answer within 30ms"; err == nil || err.Error() != want || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = serve(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := s.declare(t, func(*spec.APITool) {}).Call(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	closed := "http://" + servertest.Refused(t) + "/orders"
	_, err = s.declare(t, func(d *spec.APITool) { d.Endpoint = closed }).Call(t.Context(), nil)
	if want := "tool find: GET " + closed + ": connection refused"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func keyAuth(host string) spec.Ref[spec.Auth] {
	return spec.Ref[spec.Auth]{ID: "k", To: &spec.APIKeyAuth{AuthBase: spec.AuthBase{ID: "k"}, APIKey: spec.NewSecret("very-secret-key"), Host: host}}
}

func tokenAuth() spec.Ref[spec.Auth] {
	return spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("very-secret-token")}}
}

func TestAPI_CredentialsAndRedirects(t *testing.T) {
	other := serve(t, answer(200, "application/json", `"there"`))
	for name, tt := range map[string]struct {
		auth   spec.Ref[spec.Auth]
		header string
		value  string
	}{
		"api_key":      {keyAuth(""), "X-Api-Key", "very-secret-key"},
		"bearer_token": {tokenAuth(), "Authorization", "Bearer very-secret-token"},
	} {
		t.Run(name, func(t *testing.T) {
			// the other server has another port on the same address; Go alone takes it for the same host
			s := serve(t, answer(302, "", "", "Location", "/next"), answer(307, "", "", "Location", other.URL+"/there"))
			m := s.declare(t, func(d *spec.APITool) {
				d.Auth, d.Headers = tt.auth, map[string]spec.Secret{"x-tenant": spec.NewSecret("acme")}
			})
			before := len(other.seen())
			got, err := m.Call(t.Context(), nil)
			if err != nil || got != "there" {
				t.Fatalf("got %v, %v", got, err)
			}
			for i := range 2 {
				if got := s.headers[i].Get(tt.header); got != tt.value || s.headers[i].Get("X-Tenant") != "acme" {
					t.Errorf("call %d: %s was %q", i, tt.header, got)
				}
			}
			if h := other.headers[before]; h.Get(tt.header) != "" || h.Get("X-Tenant") != "" {
				t.Errorf("the other server got %v", h)
			}
		})
	}
	s := serve(t, answer(307, "", "", "Location", other.URL+"/there"))
	_, err := s.declare(t, func(d *spec.APITool) { d.Method = "POST" }).Call(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "another server, which must not get the arguments") {
		t.Errorf("got %v", err)
	}
}

func TestAPI_RedactsSecrets(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "no: %s %s %s", r.Header.Get("Authorization"), r.Header.Get("X-API-Key"), r.Header.Get("X-Other-Token"))
	}
	for _, auth := range []spec.Ref[spec.Auth]{keyAuth(""), tokenAuth()} {
		s := serve(t, echo)
		m := s.declare(t, func(d *spec.APITool) {
			d.Auth, d.Headers = auth, map[string]spec.Secret{"X-Other-Token": spec.NewSecret("other-secret")}
		})
		_, err := m.Call(t.Context(), nil)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "the server rejected auth "+auth.ID) {
			t.Errorf("got %v", err)
		}
	}
}

func TestNewAPI_Errors(t *testing.T) {
	tests := []struct {
		tool *spec.APITool
		want string
	}{
		{&spec.APITool{Endpoint: "ftp://h/x"}, "tool find: endpoint must begin with http:// or https://"},
		{&spec.APITool{Endpoint: "/x"}, "tool find: endpoint must begin with http:// or https://"},
		{&spec.APITool{Endpoint: "http:///x"}, "tool find: endpoint has no host"},
		{&spec.APITool{Endpoint: "http://h:x/"}, "tool find: endpoint is not a URL"},
		{&spec.APITool{Endpoint: ""}, "tool find: endpoint must begin with http:// or https://"},
		{&spec.APITool{Endpoint: "https://{host}/x"}, "tool find: endpoint: {host} is allowed in the path or the query, not in the host"},
		{&spec.APITool{Endpoint: "{url}"}, "tool find: endpoint: {url} is allowed in the path or the query, not in the host"},
		{&spec.APITool{Endpoint: "https://h/{id"}, "tool find: endpoint: unmatched \"{\""},
		{&spec.APITool{Endpoint: "https://h/{id}"}, "tool find: endpoint names {id}, which is neither an input nor a parameter"},
		{&spec.APITool{Endpoint: "https://h/", Method: "BREW"}, `tool find: method "BREW" is not one of GET, HEAD, OPTIONS, DELETE, PUT, POST, PATCH`},
		{&spec.APITool{Endpoint: "https://h/", Headers: map[string]spec.Secret{"X": spec.NewSecret("a\r\nY: b")}}, `tool find: the header X has a value that HTTP cannot carry`},
		{&spec.APITool{Endpoint: "https://h/", Auth: tokenAuth(), Headers: map[string]spec.Secret{"authorization": spec.NewSecret("x")}}, "tool find: headers and auth b both set Authorization"},
		{&spec.APITool{Endpoint: "https://h/", IdempotencyHeader: "Host"}, "tool find: the header Host is set by qtype"},
		{&spec.APITool{Endpoint: "https://h/", IdempotencyHeader: "a b"}, `tool find: invalid header "a b"`},
		{&spec.APITool{Endpoint: "https://h/", IdempotencyHeader: "x-key", Headers: map[string]spec.Secret{"X-Key": spec.NewSecret("x")}}, "tool find: the header x-key is set twice"},
		{&spec.APITool{Endpoint: "https://h/", IdempotencyHeader: "authorization", Auth: tokenAuth()}, "tool find: the header authorization is set twice"},
		{&spec.APITool{Endpoint: "https://h/", IdempotencyHeader: "Key", Pagination: &spec.Pagination{Type: spec.PagesByNumber, Parameter: "page"}}, "tool find: idempotency_header and pagination exclude each other: each page would have the key of the first"},
		{&spec.APITool{Endpoint: "https://h/", Auth: keyAuth("https://other")}, "tool find: auth k belongs to https://other, but the endpoint is at https://h"},
		{&spec.APITool{Endpoint: "https://h/", Auth: spec.Ref[spec.Auth]{ID: "a"}}, "tool find: auth names a, which is not an auth"},
		{&spec.APITool{Endpoint: "https://h/", Parameters: []*spec.Variable{variable("a", "int"), variable("a", "int")}}, "tool find: argument a is declared twice"},
	}
	for _, tt := range tests {
		tt.tool.Common().ID = "find"
		_, err := tool.NewAPI(tt.tool, tool.Options{})
		if err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}
