package wire_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/anthropic"
	"github.com/qtype-dev/qtype/model/googleai"
	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/model/ollama"
	"github.com/qtype-dev/qtype/model/openai"
	"github.com/qtype-dev/qtype/spec/chat"
)

// tooLongBodies are errors in the wire forms of providers, with the sizes that they report.
var tooLongBodies = map[string]struct {
	status           int
	body             string
	requested, limit int
}{
	"openai":           {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 9001, 8192},
	"llama-cpp-python": {400, `{"error":{"message":"This model's maximum context length is 512 tokens. However, you requested 700 tokens (690 in the messages, 10 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 690, 512},
	"llama.cpp":        {400, `{"error":{"code":400,"message":"request (700 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error"}}`, 700, 512},
	"anthropic":        {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, 208310, 200000},
	"anthropic output": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 199000 + 8192 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, 199000, 200000},
	"google":           {400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, 1200000, 1048576},
	"ollama":           {400, `{"error":"the input length exceeds the context length"}`, 0, 0},
	"mistral":          {400, `{"object":"error","message":"Prompt contains 40000 tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}`, 40000, 32768},
}

// otherBodies are errors that are not about the context window.
var otherBodies = map[string]struct {
	status int
	body   string
}{
	"rate limit": {429, `{"error":{"message":"Rate limit reached for tokens per minute: maximum context length is 5 tokens","type":"tokens","code":"rate_limit_exceeded"}}`},
	"parameter":  {400, `{"error":{"message":"max_tokens must be at least 1","type":"invalid_request_error"}}`},
}

// clients are the clients of the providers.
var clients = map[string]func(wire.Config) (model.Chat, error){
	"openai":    func(c wire.Config) (model.Chat, error) { return openai.New(c) },
	"mistral":   func(c wire.Config) (model.Chat, error) { return openai.NewMistral(c) },
	"anthropic": func(c wire.Config) (model.Chat, error) { return anthropic.New(anthropic.Config{Config: c}) },
	"google":    func(c wire.Config) (model.Chat, error) { return googleai.New(c) },
	"ollama":    func(c wire.Config) (model.Chat, error) { return ollama.New(ollama.Config{Config: c}) },
}

// rejectedWith returns the error of a call of a client whose server rejects it.
func rejectedWith(t *testing.T, client string, status int, body string) *model.Error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	m, err := clients[client](wire.Config{Info: model.Info{ID: "m", Name: "m"}, BaseURL: server.URL, Key: "k", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{chat.Text(chat.User, "hello")}}, nil)
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v", client, err)
	}
	return e
}

func TestTooLong(t *testing.T) {
	for name, c := range tooLongBodies {
		client, _, _ := strings.Cut(name, " ")
		if clients[client] == nil {
			client = "openai" // a server with OpenAI's protocol
		}
		e := rejectedWith(t, client, c.status, c.body)
		if !e.TooLong || e.Temporary || e.Requested != c.requested || e.Limit != c.limit {
			t.Errorf("%s: too long %v, requested %d, limit %d: %v", name, e.TooLong, e.Requested, e.Limit, e)
		}
	}
	for name, c := range otherBodies {
		if e := rejectedWith(t, "openai", c.status, c.body); e.TooLong || e.Limit != 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
