package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/model"
)

const busy = `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`

// failure runs one call and returns its error.
func failure(t *testing.T, m model.Chat, stream bool) *model.Error {
	t.Helper()
	req := ask("x")
	req.Stream = stream
	_, err := model.Call(t.Context(), m, req, nil)
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, which is not a model error", err)
	}
	return e
}

func TestGenerate_Failures(t *testing.T) {
	page := "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
	tests := map[string]struct {
		answer http.HandlerFunc
		stream bool
		want   string // the whole message, URL is that of the server
		calls  int
	}{
		"401": {status(401, `{"error":{"message":"Incorrect API key provided: sk-proj-********6789. You can find it at …","type":"invalid_request_error","code":"invalid_api_key"}}`), false,
			"model gpt: HTTP 401: the server rejected the credential OPENAI_API_KEY: Incorrect API key provided: *** You can find it at … (URL/v1)", 1},
		"401 that quotes the key": {status(401, `{"error":"bad key sk-proj-very-secret-0123456789!"}`), false,
			"model gpt: HTTP 401: the server rejected the credential OPENAI_API_KEY: bad key ***! (URL/v1)", 1},
		"400": {status(400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`), true,
			"model gpt: HTTP 400: This model's maximum context length is 8192 tokens. (URL/v1)", 1},
		"404 of FastAPI":     {status(404, `{"detail":"Not Found"}`), false, "model gpt: HTTP 404: Not Found (URL/v1)", 1},
		"404 of Ollama":      {status(404, `{"error":{"message":"model \"gpt-6-sol\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`), false, `model gpt: HTTP 404: model "gpt-6-sol" not found, try pulling it first (URL/v1)`, 1},
		"500 every time":     {status(500, `{"error":{"message":"The server had an error","type":"server_error"}}`), false, "model gpt: HTTP 500: The server had an error (URL/v1), tried 3 times", 3},
		"503 without a body": {status(503, ``), true, "model gpt: HTTP 503: Service Unavailable (URL/v1), tried 3 times", 3},
		"502 page":           {raw2(502, "text/html", page), false, "model gpt: HTTP 502: the response is a web page instead of JSON: 502 Bad Gateway (URL/v1), tried 3 times", 3},
		"429 with a long Retry-After": {status(429, busy, "Retry-After", "3600"), false,
			"model gpt: HTTP 429: Rate limit reached (URL/v1), retry after 1h", 1},
		"429 for money":       {status(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`), false, "model gpt: HTTP 429: You exceeded your current quota (URL/v1)", 1},
		"redirect":            {status(307, ``, "Location", "https://elsewhere.example/v1/chat/completions"), false, "model gpt: HTTP 307: the server redirects to https://elsewhere.example/v1/chat/completions; check base_url (URL/v1)", 1},
		"200 page":            {raw2(200, "text/html", page), false, "model gpt: the response is a web page instead of JSON: 502 Bad Gateway; check base_url (URL/v1)", 1},
		"200 page, streaming": {raw2(200, "text/html", page), true, "model gpt: the response is a web page instead of JSON: 502 Bad Gateway; check base_url (URL/v1)", 1},
		"200 text":            {raw2(200, "text/plain", "OK\n"), false, "model gpt: the response of type text/plain is not JSON: OK (URL/v1)", 1},
		"200 nothing":         {raw2(200, "application/json", ""), false, "model gpt: the response is empty (URL/v1)", 1},
		"200 other JSON":      {status(200, `{"status":"ok"}`), false, "model gpt: invalid chat completion: no choices (URL/v1)", 1},
		"200 list":            {status(200, `[1]`), false, "model gpt: invalid chat completion: not a JSON object (URL/v1)", 1},
		"400 in a list": {status(400, `[{"error":{"code":400,"message":"Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), false,
			"model gpt: HTTP 400: Please pass a valid API key. (URL/v1)", 1},
		"429 in a list": {status(429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"90s"}]}}]`), false,
			"model gpt: HTTP 429: Quota exceeded (URL/v1), retry after 1m30s", 1},
		"429 of a day": {status(429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.1s"}]}}]`), false,
			"model gpt: HTTP 429: Quota exceeded (URL/v1)", 1},
		"429 for money, by its type": {status(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"quota"}}`), false, "model gpt: HTTP 429: You exceeded your current quota (URL/v1)", 1},
		"200 of a gateway":           {status(200, `{"success":false,"msg":"model not available"}`), false, "model gpt: model not available (URL/v1)", 1},
		"201 nothing":                {status(201, ""), false, "model gpt: the response is empty (URL/v1)", 1},
		"200 wrong types":            {status(200, `{"choices":[{"message":{"tool_calls":7}}]}`), false, `model gpt: invalid chat completion: "choices.message.tool_calls" cannot be number (URL/v1)`, 1},
		"200 and an error":           {status(200, `{"error":{"message":"upstream is gone","code":502}}`), false, "model gpt: HTTP 502: upstream is gone (URL/v1), tried 3 times", 3},
		"error in a choice": {sse(delta("Hi"), `{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"Provider disconnected"}}]}`), true,
			"model gpt: HTTP 502: Provider disconnected (URL/v1)", 1},
		"a server that broke off": {status(200, strings.Replace(hello, `"stop"`, `"network_error"`, 1)), false,
			"model gpt: the answer ended before it was complete (finish reason network_error) (URL/v1), tried 3 times", 3},
		"an unknown end":      {status(200, strings.Replace(hello, `"stop"`, `"newspeak"`, 1)), false, "model gpt: the answer ended before it was complete (finish reason newspeak) (URL/v1)", 1},
		"stream of nothing":   {sse("[DONE]"), true, "model gpt: invalid chat completion: no choices (URL/v1)", 1},
		"stream of garbage":   {sse(delta("Hi"), "{"), true, "model gpt: the response of type text/event-stream; charset=utf-8 is not JSON: { (URL/v1)", 1},
		"stream cut":          {sse(delta("Hi"), "cut"), true, "model gpt: the stream ended before the answer was complete (URL/v1)", 1},
		"stream ends early":   {sse(delta("Hi")), true, "model gpt: the stream ended before the answer was complete (URL/v1)", 1},
		"cut before a word":   {sse(`{"choices":[{"delta":{"role":"assistant"}}]}`, "cut"), true, "model gpt: the stream ended before the answer was complete (URL/v1), tried 3 times", 3},
		"error in the stream": {sse(delta("Hi"), `{"error":{"message":"The server had an error","type":"server_error"}}`, "[DONE]"), true, "model gpt: HTTP 500: The server had an error (URL/v1)", 1},
		"error, no code":      {sse(delta("Hi"), `{"error":"context full"}`), true, "model gpt: context full (URL/v1)", 1},
		"error without name":  {sse(`{"message":"no slot","code":503}`), true, "model gpt: HTTP 503: no slot (URL/v1), tried 3 times", 3},
		"body cut":            {short, false, "model gpt: lost the connection to URL/v1: the connection was closed before the answer was complete, tried 3 times", 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer)
			e := failure(t, s.talk(t, nil), tt.stream)
			if got := strings.ReplaceAll(e.Error(), s.URL, "URL"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if s.Calls() != tt.calls {
				t.Errorf("%d calls, want %d", s.Calls(), tt.calls)
			}
		})
	}
}

func raw2(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// short announces more bytes than it sends.
func short(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"choices":`))
}

func TestGenerate_RetriesBusyServer(t *testing.T) {
	for _, wait := range []string{"0.01", "0.2", ""} {
		s := serve(t, status(429, busy, "Retry-After", wait), status(200, hello))
		begun := time.Now()
		got, err := model.Call(t.Context(), s.talk(t, nil), ask("x"), nil)
		if err != nil || got.Message.Text() != "Hello." || s.Calls() != 2 {
			t.Fatalf("got %v, %v after %d calls", got, err, s.Calls())
		}
		if took := time.Since(begun); wait == "0.2" && took < 200*time.Millisecond {
			t.Errorf("retried after %s, but Retry-After is 0.2 s", took)
		}
	}
}

func TestGenerate_RetryCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status(429, busy, "Retry-After", "60")(w, r)
		time.AfterFunc(time.Millisecond, cancel)
	})
	m := s.talk(t, func(_ *openai.Config, p *model.CallPolicy) { p.MaxDelay = time.Hour })
	if _, err := model.Call(ctx, m, ask("x"), nil); !errors.Is(err, context.Canceled) || s.Calls() != 1 {
		t.Errorf("got %v after %d calls", err, s.Calls())
	}
}

func TestGenerate_Timeouts(t *testing.T) {
	hang := func(before ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if len(before) > 0 {
				sse(before...)(w, r)
			}
			<-r.Context().Done()
		}
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"before the first word": {hang(), "model gpt: no complete answer within 50ms, tried 2 times"},
		"amid the answer":       {hang(delta("Hi")), "model gpt: no complete answer within 50ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its clock advances only while all goroutines wait
				network := make(pipes)
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
					tt.answer(w, r)
				})}
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(network) }()
				m, err := openai.New(openai.Config{Info: model.Info{ID: "gpt"}, BaseURL: "http://gpt.test/v1", Key: "k",
					HTTP: &http.Client{Transport: &http.Transport{DialContext: network.dial}}})
				if err != nil {
					t.Fatal(err)
				}
				p := model.CallPolicy{Timeout: 50 * time.Millisecond, MaxAttempts: 2, InitialDelay: time.Millisecond, MaxDelay: time.Second}
				e := failure(t, model.WithRetry(m, p), true)
				if e.Error() != tt.want {
					t.Errorf("got  %s\nwant %s", e, tt.want)
				}
				if errors.Is(e, context.DeadlineExceeded) {
					t.Error("the caller's context seems to have ended, but it has not")
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				<-ended
			})
		})
	}
}

// pipes is a network within the process: with real sockets the test cannot know whether a
// server waits or works.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

func TestGenerate_OpenConnectionDoesNotDelay(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(delta("Hi"), finish("stop"), "[DONE]")(w, r)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	req := ask("x")
	req.Stream = true
	if _, err := model.Call(t.Context(), s.talk(t, nil), req, nil); err != nil {
		t.Fatal(err)
	}
}

func TestGenerate_Unreachable(t *testing.T) {
	closed := "http://" + servertest.Refused(t)
	m, err := openai.New(openai.Config{Info: model.Info{ID: "gpt"}, BaseURL: closed + "/v1", HTTP: &http.Client{Transport: &http.Transport{}}, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	e := failure(t, m, false)
	if want := "model gpt: cannot reach " + closed + "/v1: connection refused"; e.Error() != want || !e.Temporary {
		t.Errorf("got  %s (temporary: %v)\nwant %s", e, e.Temporary, want)
	}
	s := serve(t, status(200, hello))
	wrong := "https" + strings.TrimPrefix(s.URL, "http")
	e = failure(t, s.talk(t, func(c *openai.Config, p *model.CallPolicy) { c.BaseURL, p.MaxAttempts = wrong, 1 }), false)
	if want := "use http instead of https"; !strings.Contains(e.Error(), want) {
		t.Errorf("got %s", e)
	}
}

func TestErrors_RedactURLCredentials(t *testing.T) {
	s := serve(t, status(500, `{}`))
	withUser := strings.Replace(s.URL, "http://", "http://ann:hunter2@", 1) + "/v1?sig=hunter3"
	e := failure(t, s.talk(t, func(c *openai.Config, p *model.CallPolicy) { c.BaseURL, c.Key, p.MaxAttempts = withUser, "", 1 }), false)
	if strings.Contains(e.Error(), "hunter") {
		t.Errorf("got %s", e)
	}
	if got := s.Requests()[0].Header.Get("Authorization"); !strings.HasPrefix(got, "Basic ") {
		t.Errorf("Authorization was %q", got)
	}
}
