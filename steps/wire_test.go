package steps_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// request is a request that an OpenAI-compatible server receives.
type request struct {
	Messages []wireMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice string `json:"tool_choice"`
	Stream     bool   `json:"stream"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type wireCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// String formats a message on one line.
func (m wireMessage) String() string {
	s := m.Role
	if m.ToolCallID != "" {
		s += "(" + m.ToolCallID + ")"
	}
	switch c := m.Content.(type) {
	case nil:
	case string:
		s += ": " + c
	default:
		b, _ := json.Marshal(c)
		s += ": " + string(b)
	}
	for _, c := range m.ToolCalls {
		s += fmt.Sprintf(" → %s %s(%s)", c.ID, c.Function.Name, c.Function.Arguments)
	}
	return s
}

func lines(msgs []wireMessage) []string {
	var out []string
	for _, m := range msgs {
		out = append(out, m.String())
	}
	return out
}

// reply is a response of the server.
type reply struct {
	deltas []string       // the text, in parts if it is streamed
	calls  [][3]string    // id, name, arguments
	others map[string]any // other fields of a message that is not streamed
	finish string         // stop if it is empty
	status int            // an error if it is set
	failed string         // the JSON of the error; out of order if it is empty
	cut    bool           // the connection ends before the answer does
	tokens int            // the tokens of the request that the server reports; 11 if it is 0
	hold   <-chan struct{}
}

func textReply(deltas ...string) reply { return reply{deltas: deltas} }

func callsFor(calls ...[3]string) reply { return reply{calls: calls} }

// llm is a server with OpenAI's wire format that records its requests.
type llm struct {
	*httptest.Server
	answer func(n int, req request) reply // n counts requests from 1

	mu   sync.Mutex
	seen []request
}

func newLLM(t testing.TB, answer func(n int, req request) reply) *llm {
	s := &llm{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *llm) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *llm) last() request {
	all := s.requests()
	return all[len(all)-1]
}

func (s *llm) serve(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // a server notices the end of a connection after the body
	s.mu.Lock()
	s.seen = append(s.seen, req)
	n := len(s.seen)
	s.mu.Unlock()
	a := s.answer(n, req)
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case a.status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		fmt.Fprint(w, cmp.Or(a.failed, `{"error":{"message":"out of order","type":"server_error"}}`))
	case a.cut:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"par`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case req.Stream:
		a.stream(w)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": a.reason(), "message": a.message()}}, "usage": a.usage()})
	}
}

func (a reply) usage() map[string]any {
	return map[string]any{"prompt_tokens": cmp.Or(a.tokens, 11), "completion_tokens": 7}
}

func (a reply) reason() string {
	switch {
	case a.finish != "":
		return a.finish
	case len(a.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (a reply) message() map[string]any {
	m := map[string]any{"role": "assistant", "content": strings.Join(a.deltas, "")}
	maps.Copy(m, a.others)
	if calls := a.wireCalls(); calls != nil {
		m["tool_calls"] = calls
	}
	return m
}

func (a reply) wireCalls() []wireCall {
	var out []wireCall
	for i, c := range a.calls {
		w := wireCall{Index: i, ID: c[0], Type: "function"}
		w.Function.Name, w.Function.Arguments = c[1], c[2]
		out = append(out, w)
	}
	return out
}

func (a reply) stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	choice := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	send(choice(map[string]any{"role": "assistant", "reasoning_content": "thinking hard"}, nil))
	for _, d := range a.deltas {
		send(choice(map[string]any{"content": d}, nil))
	}
	if calls := a.wireCalls(); calls != nil {
		send(choice(map[string]any{"tool_calls": calls}, nil))
	}
	send(choice(map[string]any{}, a.reason()))
	send(map[string]any{"choices": []any{}, "usage": a.usage()})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// testEnv is the application of a step: one model, one memory, some tools.
type testEnv struct {
	model  *spec.Model
	memory *spec.Memory
	shared *memory.Memory
	env    *steps.Env
}

func newTestEnv(t testing.TB, s *llm, l layout, cfg memory.Config) *testEnv {
	t.Helper()
	w := &testEnv{model: &spec.Model{ID: "m", Provider: "openai", ModelID: "gpt-6-sol", BaseURL: s.URL + "/v1", Retry: &spec.RetryPolicy{MaxAttempts: 1}},
		memory: &spec.Memory{ID: "chat_memory"}}
	made, err := provider.New(w.model, provider.Options{Getenv: func(string) string { return "" }, HTTP: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	cfg.ID = w.memory.ID
	if cfg.Counter, err = tokenizer.For("o200k_base"); err != nil {
		t.Fatal(err)
	}
	if w.shared, err = memory.New(cfg, memory.NewInProcess()); err != nil {
		t.Fatal(err)
	}
	w.env = &steps.Env{Slots: l,
		Model:  func(*spec.Model) (model.Chat, error) { return made, nil },
		Memory: func(*spec.Memory) (*memory.Memory, error) { return w.shared, nil },
		Tool: func(declared spec.Tool) (tool.Tool, error) {
			return tool.NewAPI(declared.(*spec.APITool), tool.Options{HTTP: s.Client()})
		},
	}
	return w
}

func (w *testEnv) inference(l layout, inputs []string, output, system string) *spec.LLMInference {
	return &spec.LLMInference{StepBase: l.base("draft", inputs, []string{output}), Model: spec.Ref[spec.ModelEntity]{To: w.model},
		Memory: spec.Ref[*spec.Memory]{To: w.memory}, SystemMessage: system}
}

// history lists the messages of a session: role, text, status.
func (w *testEnv) history(t testing.TB, session string) []string {
	t.Helper()
	var out []string
	for e, err := range w.shared.History(t.Context(), session) {
		if err != nil {
			t.Fatal(err)
		}
		s := string(e.Message.Role)
		if e.Message.ToolCallID != "" {
			s += "(" + e.Message.ToolCallID + ")"
		}
		s += ": " + e.Message.Text()
		for _, c := range e.Message.Calls() {
			s += fmt.Sprintf(" → %s %s(%s)", c.ID, c.Name, c.Arguments)
		}
		out = append(out, s+" ["+e.Status.String()+"]")
	}
	return out
}
