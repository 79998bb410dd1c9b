// Package e2e_test tests whole applications, the documentation and the layout of the module.
package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

// TestMain runs the tests in the module's root folder, where examples and docs are.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}
	testkit.AllowWaiting()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// wireMessage is a message in OpenAI's chat protocol.
type wireMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// request is a chat request that a server received.
type request struct {
	Model       string
	Messages    []wireMessage
	Stream      bool
	Temperature *float64
	ToolChoice  any `json:"tool_choice"`
	Tools       []struct {
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
}

// modelServer is an OpenAI-compatible chat server that records its requests.
type modelServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

// startModelServer starts a server whose responses reply makes: it gets the
// number of the request, from 1, and returns the JSON of an assistant message.
func startModelServer(t *testing.T, reply func(n int, r request) string) *modelServer {
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/chat/completions" {
			http.Error(w, fmt.Sprint("bad request: ", r.URL.Path, err), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, req)
		n := len(s.requests)
		s.mu.Unlock()
		message := reply(n, req)
		if req.Stream {
			writeStream(w, message)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"r%d","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, n, message)
	}))
	t.Cleanup(s.Close)
	return s
}

// received returns the requests so far.
func (s *modelServer) received() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// writeStream sends a text message as server-sent events of three characters each.
func writeStream(w io.Writer, message string) {
	var m wireMessage
	_ = json.Unmarshal([]byte(message), &m)
	for part := range slices.Chunk([]rune(m.Content), 3) {
		delta, _ := json.Marshal(string(part))
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", delta)
	}
	_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
	_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n")
}

// assistantMessage returns the JSON of an assistant message.
func assistantMessage(text string) string {
	b, _ := json.Marshal(map[string]string{"role": "assistant", "content": text})
	return string(b)
}

// transcript formats messages as "role: content | role: content".
func transcript(messages []wireMessage) string {
	var parts []string
	for _, m := range messages {
		s := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			s += "→" + c.Function.Name + c.Function.Arguments
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

// writeFile writes a document to a temporary folder and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	return testkit.WriteFile(t, "app.qtype.yaml", text)
}

// openApp opens a document with memories in RAM; the test closes it at its end.
func openApp(t *testing.T, text string, opts ...qtype.Option) *runtime.App {
	t.Helper()
	app, err := qtype.Open(t.Context(), writeFile(t, text), append(opts, qtype.WithEphemeral())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	return app
}

// singleInput returns an input of one row.
func singleInput(session string, values map[string]any) iter.Seq[runtime.Input] {
	return slices.Values([]runtime.Input{{Session: session, Values: values}})
}

// run runs a flow and returns its result rows; an error that ends the run fails the test.
func run(t *testing.T, app *runtime.App, flow, session string, rows []map[string]any) []*runtime.Result {
	t.Helper()
	var inputs []runtime.Input
	for _, r := range rows {
		inputs = append(inputs, runtime.Input{Values: r, Session: cmp.Or(session, "default")})
	}
	var out []*runtime.Result
	for row, err := range app.Run(t.Context(), flow, slices.Values(inputs)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

// runAll runs a flow and returns each result row as "output | output" or as its error.
func runAll(t *testing.T, app *runtime.App, flow string, rows ...map[string]any) []string {
	t.Helper()
	var out []string
	for _, row := range run(t, app, flow, "", rows) {
		if row.Err != nil {
			out = append(out, fmt.Sprintf("row %d: %v", row.Number, row.Err))
			continue
		}
		var cells []string
		for _, v := range row.Outputs() {
			cells = append(cells, value.Text(v))
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return out
}

// runJSON runs a flow in session s and returns each result row as JSON or as its error.
func runJSON(t *testing.T, app *runtime.App, flow string, rows ...map[string]any) []string {
	t.Helper()
	var out []string
	for _, row := range run(t, app, flow, "s", rows) {
		if row.Err != nil {
			out = append(out, "error: "+row.Err.Error())
			continue
		}
		var fields []value.Field
		for v, x := range row.Outputs() {
			fields = append(fields, value.Field{Name: v.ID, Value: x})
		}
		out = append(out, value.NewRecord("", fields...).String())
	}
	return out
}

// runRow runs a flow on one row and returns its outputs by name.
func runRow(t *testing.T, app *runtime.App, flow, session string, values map[string]any) map[string]any {
	t.Helper()
	var out map[string]any
	for _, row := range run(t, app, flow, session, []map[string]any{values}) {
		if row.Err != nil {
			t.Fatal(row.Err)
		}
		out = map[string]any{}
		for v, x := range row.Outputs() {
			out[v.ID] = x
		}
	}
	return out
}

// flushedTurns returns the turns of a session in which messages were flushed, and the
// number of flushes.
func flushedTurns(t *testing.T, m *memory.Memory, session string) (turns map[int64]bool, flushes int) {
	t.Helper()
	turns = map[int64]bool{}
	for e, err := range m.Events(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == store.EventFlush {
			flushes++
			turns[e.Turn] = true
		}
	}
	return turns, flushes
}

// assertLines compares lines and shows both sides one below the other.
func assertLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// chatApp has one flow of one chat step with a memory; %s is the model server.
const chatApp = `
id: chat
memories: [{id: chat_memory, token_limit: 50000}]
models: [{type: Model, id: assistant, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1"}]
flows:
  - id: talk
    variables: [{id: message, type: ChatMessage}, {id: reply, type: ChatMessage}]
    inputs: [message]
    outputs: [reply]
    steps:
      - {type: LLMInference, id: answer, model: assistant, memory: chat_memory, system_message: You answer for a bookshop., inputs: [message], outputs: [reply]}
`
