package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/model/langchain"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The Mistral client uses Go's default transport and cannot close its connections;
// closing the test server closes them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type server struct{ *modeltest.Server }

func serve(t *testing.T, answer http.HandlerFunc) server {
	t.Helper()
	return server{modeltest.Serve(t, answer)}
}

func (s server) talk(t *testing.T, name string, params map[string]any) model.Chat {
	t.Helper()
	m, err := clients()[name](langchain.Config{Timeout: time.Minute, Config: wire.Config{
		Info: model.Info{ID: "m", Provider: "langchaingo:" + name, Name: "some-model"}, BaseURL: s.URL,
		Key: "secret-0123456789", Credential: "MY_KEY", Params: params, HTTP: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func clients() map[string]func(langchain.Config) (*langchain.Model, error) {
	return map[string]func(langchain.Config) (*langchain.Model, error){
		"huggingface": langchain.NewHuggingFace, "mistral": langchain.NewMistral, "ollama": langchain.NewOllama}
}

func answers(code int, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
		for _, line := range lines {
			if line == "cut" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, line+"\n")
			w.(http.Flusher).Flush()
		}
	}
}

func talk() model.Request {
	return model.Request{Messages: []chat.Message{chat.Text(chat.System, "Be short."), chat.Text(chat.User, "one"),
		chat.Text(chat.Chatbot, "first"), chat.Text(chat.User, "two")}}
}

func say(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

var conversation = []any{say("system", "Be short."), say("user", "one"), say("assistant", "first"), say("user", "two")}

func TestOllama(t *testing.T) {
	line := func(text string) string {
		return `{"model":"some-model","message":{"role":"assistant","content":"` + text + `"},"done":false}`
	}
	done := `{"model":"some-model","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":11,"eval_count":2}`
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			s := serve(t, answers(200, line("Hel"), line("lo."), done))
			req := talk()
			req.Stream = stream
			var deltas []string
			got, err := model.Call(t.Context(), s.talk(t, "ollama", map[string]any{"num_ctx": 4096, "max_tokens": 9, "keep_alive": "1h"}), req,
				func(ev model.Event) { deltas = append(deltas, ev.Text) })
			if err != nil {
				t.Fatal(err)
			}
			if got.Message.Text() != "Hello." || got.Finish != "length" || got.Usage != (model.Usage{Input: 11, Output: 2}) {
				t.Errorf("got %+v", got)
			}
			if stream && strings.Join(deltas, "|") != "Hel|lo." || !stream && deltas != nil {
				t.Errorf("deltas %q", deltas)
			}
			want := map[string]any{"model": "some-model", "stream": stream, "keep_alive": "1h", "messages": conversation,
				"options": map[string]any{"num_ctx": 4096.0, "num_predict": 9.0}} // without a temperature, which the document does not set
			if d := cmp.Diff(want, s.Requests()[0].Body); d != "" {
				t.Error(d)
			}
			if s.Requests()[0].Path != "/api/chat" || s.Requests()[0].Header.Get("Authorization") != "Bearer secret-0123456789" {
				t.Errorf("called %s with %q", s.Requests()[0].Path, s.Requests()[0].Header.Get("Authorization"))
			}
		})
	}
}

func TestOllama_Images(t *testing.T) {
	s := serve(t, answers(200, `{"message":{"role":"assistant","content":"A cat."},"done":true}`))
	req := model.Request{Messages: []chat.Message{{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "What?"}, {Type: "image", Data: []byte("PNG")}}}}}
	if _, err := model.Call(t.Context(), s.talk(t, "ollama", nil), req, nil); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"role": "user", "content": "What?", "images": []any{"UE5H"}}}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"]); d != "" {
		t.Error(d)
	}
}

func TestHuggingFace(t *testing.T) {
	s := serve(t, answers(200, `[{"generated_text":"Hello."}]`))
	req := talk()
	req.Stream = true
	text := ""
	got, err := model.Call(t.Context(), s.talk(t, "huggingface", map[string]any{"max_tokens": 9, "top_p": 0.5}), req, func(ev model.Event) { text += ev.Text })
	if err != nil || got.Message.Text() != "Hello." || text != "Hello." || got.Finish != "stop" {
		t.Fatalf("got %+v, deltas %q, %v", got, text, err)
	}
	want := map[string]any{"inputs": "System: Be short.\n\nUser: one\n\nAssistant: first\n\nUser: two\n\nAssistant:",
		"parameters": map[string]any{"max_new_tokens": 9.0, "top_p": 0.5, "return_full_text": false}}
	if d := cmp.Diff(want, s.Requests()[0].Body); d != "" {
		t.Error(d)
	}
	if s.Requests()[0].Path != "/models/some-model" {
		t.Errorf("called %s", s.Requests()[0].Path)
	}
}

func TestMistral(t *testing.T) {
	s := serve(t, answers(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":2}}`))
	req := talk()
	req.Stream = true
	text := ""
	got, err := model.Call(t.Context(), s.talk(t, "mistral", map[string]any{"temperature": 0.0, "max_tokens": 9}), req, func(ev model.Event) { text += ev.Text })
	if err != nil || got.Message.Text() != "Hello." || text != "Hello." || got.Usage != (model.Usage{Input: 11, Output: 2}) {
		t.Fatalf("got %+v, deltas %q, %v", got, text, err)
	}
	body := s.Requests()[0].Body
	if d := cmp.Diff(conversation, body["messages"]); d != "" {
		t.Error(d)
	}
	if body["temperature"] != 0.0 || body["max_tokens"] != 9.0 || body["model"] != "some-model" || s.Requests()[0].Path != "/v1/chat/completions" {
		t.Errorf("sent %v to %s", body, s.Requests()[0].Path)
	}
	if body["stream"] != nil {
		t.Error("it was streamed")
	}
}

func TestUnsupportedRequests(t *testing.T) {
	s := serve(t, answers(500))
	call := chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "find"})
	for _, name := range []string{"ollama", "mistral", "huggingface"} {
		m := s.talk(t, name, nil)
		tools, media, past, none := talk(), talk(), talk(), model.Request{}
		tools.Tools = []model.Tool{{Name: "find"}}
		media.Messages = append(media.Messages, chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "audio", Data: []byte("x")}}})
		past.Messages = append(past.Messages, call)
		for want, req := range map[string]model.Request{"cannot call tools": tools, "cannot carry content of type audio": media, "cannot carry tool calls": past, "nothing to send": none} {
			_, err := model.Call(t.Context(), m, req, nil)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "model m: ") {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
	}
	if s.Calls() != 0 {
		t.Errorf("%d calls were made", s.Calls())
	}
	for want, c := range map[string]wire.Config{
		"cannot send the inference parameter top_p": {BaseURL: "http://h", Params: map[string]any{"top_p": 1}},
		"must have no path":                         {BaseURL: "http://h/deep/v1"},
		"must be an http or https address":          {BaseURL: "://"},
	} {
		c.HTTP = http.DefaultClient
		if _, err := langchain.NewMistral(langchain.Config{Config: c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	page := "<html><title>nginx &amp; co</title></html>"
	tests := map[string]struct {
		name   string
		answer http.HandlerFunc
		stream bool
		want   string
		again  bool
	}{
		"ollama 404":        {"ollama", answers(404, `{"error":"model \"some-model\" not found"}`), false, `HTTP 404: model "some-model" not found (URL), retry after 7s`, false},
		"ollama 429":        {"ollama", answers(429, `{"error":"slow down"}`), true, `HTTP 429: slow down (URL), retry after 7s`, true},
		"ollama page":       {"ollama", answers(502, page), true, `HTTP 502: the response is a web page instead of JSON: nginx & co (URL), retry after 7s`, true},
		"ollama cut":        {"ollama", answers(200, `{"message":{"content":"Hel"},"done":false}`, "cut"), true, `lost the connection to URL: the connection was closed before the answer was complete, retry after 7s`, true},
		"ollama ends early": {"ollama", answers(200, `{"message":{"content":"Hel"},"done":false}`), true, `the answer ended before it was complete (URL), retry after 7s`, true},
		"ollama, in one":    {"ollama", answers(200, `{"message":{"content":"Hel"},"done":false}`), false, `the answer ended before it was complete (URL), retry after 7s`, true},
		"ollama amid":       {"ollama", answers(200, `{"message":{"content":"Hel"},"done":false}`, `{"error":"out of memory"}`), true, `out of memory (URL), retry after 7s`, false},
		"huggingface 401":   {"huggingface", answers(401, `{"error":"bad token secret-0123456789"}`), false, `HTTP 401: the server rejected the credential MY_KEY: bad token *** (URL), retry after 7s`, false},
		"huggingface 503":   {"huggingface", answers(503, `{"error":"loading","estimated_time":20}`), false, `HTTP 503: loading (URL), retry after 7s`, true},
		"mistral 401":       {"mistral", answers(401, `{"message":"Unauthorized","request_id":"1"}`), false, `HTTP 401: the server rejected the credential MY_KEY: Unauthorized (URL)`, false},
		"mistral 429":       {"mistral", answers(429, `{"message":"Requests rate limit exceeded"}`), true, `HTTP 429: Requests rate limit exceeded (URL)`, true},
		"mistral page":      {"mistral", answers(200, page), false, `the response does not follow the protocol; check base_url (URL)`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer)
			req := talk()
			req.Stream = tt.stream
			_, err := model.Call(t.Context(), s.talk(t, tt.name, nil), req, nil)
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, which is not a model error", err)
			}
			if got, want := strings.ReplaceAll(e.Error(), s.URL, "URL"), "model m: "+tt.want; got != want || e.Temporary != tt.again {
				t.Errorf("got  %s (temporary: %v)\nwant %s", got, e.Temporary, want)
			}
		})
	}
}

func TestGenerate_Canceled(t *testing.T) {
	for _, name := range []string{"ollama", "mistral", "huggingface"} {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		s := serve(t, func(http.ResponseWriter, *http.Request) { cancel(); <-release })
		_, err := model.Call(ctx, s.talk(t, name, nil), talk(), nil)
		close(release) // the Mistral client's call ends only with the server's response
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestGenerate_BreakStopsCall(t *testing.T) {
	s := serve(t, answers(200, `{"message":{"content":"Hel"},"done":false}`, `{"message":{"content":"lo"},"done":false}`))
	req := talk()
	req.Stream = true
	n := 0
	for range s.talk(t, "ollama", nil).Generate(t.Context(), req) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}
