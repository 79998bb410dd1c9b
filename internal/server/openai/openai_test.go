package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer is a server of testdata/app.qtype.yaml.
type testServer struct {
	*httptest.Server
	own *server.Server
	app *runtime.App
	t   testing.TB
}

// serve starts a server. A nil store is one in RAM.
func serve(t testing.TB, store memory.Store, o server.Options) *testServer {
	t.Helper()
	if store == nil {
		store = memory.NewInProcess()
	}
	app, err := runtimetest.Open(context.Background(), "testdata/app.qtype.yaml", runtime.Options{Store: storetest.Shared(store)})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(app, o)
	h := httptest.NewServer(s)
	stop := func() {
		testkit.CloseServer(h)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		_ = app.Close(context.Background())
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	}
	t.Cleanup(stop)
	return &testServer{h, s, app, t}
}

// keyed starts a server whose callers need a key.
func keyed(t testing.TB, limits access.Limits) *testServer {
	t.Helper()
	control, err := access.New(access.Config{Keys: "ada:ada-key-0123456789,boss:boss-key-0123456789", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, nil, server.Options{Access: control})
}

// reply is a response that was read.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request. headers are pairs of name and value.
func (s *testServer) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := testkit.Request(s.t, method, s.URL+path, body, headers...)
	return reply{r.Status, r.Header, r.Body}
}

func (s *testServer) post(path, body string, headers ...string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, path, body, headers...)
}

// into parses the body of a reply.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	testkit.Reply{Body: r.body}.Into(t, v)
}

// frames returns the data of the events of a stream.
func (r reply) frames() []string {
	var data []string
	for s := bufio.NewScanner(strings.NewReader(r.body)); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			data = append(data, text)
		}
	}
	return data
}

// failure is an error of OpenAI's API.
type failure struct {
	Error struct {
		Message, Type, Code string
		Param               *string
	}
}

// completion is a chat completion, or a chunk of one.
type completion struct {
	ID, Object, Model string
	Choices           []struct {
		Message, Delta struct {
			Role, Reasoning string
			Content         *string
			ToolCalls       []call `json:"tool_calls"`
		}
		Reason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

type call struct {
	ID, Type string
	Function struct{ Name, Arguments string }
}

// chat sends messages to a flow and returns the answer.
func (s *testServer) chat(model, messages, more string, headers ...string) completion {
	s.t.Helper()
	r := s.post("/v1/chat/completions", `{"model":"`+model+`","messages":`+messages+more+`}`, headers...)
	var c completion
	r.into(s.t, &c)
	if r.status != http.StatusOK || len(c.Choices) != 1 {
		s.t.Fatalf("status %d: %s", r.status, r.body)
	}
	return c
}

// text returns the text of an answer.
func (c *completion) text() string {
	if len(c.Choices) == 0 || c.Choices[0].Message.Content == nil {
		return ""
	}
	return *c.Choices[0].Message.Content
}

// weather declares a tool of the client.
const weather = `,"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":true}}]`

// quote returns a text as JSON.
func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}
