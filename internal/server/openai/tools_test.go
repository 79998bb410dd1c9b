package openai_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
)

const question = `{"role":"user","content":"weather in Rome and Oslo"}`

// asked sends a question whose answer are calls.
func (s *testServer) asked(messages, more string, headers ...string) []call {
	s.t.Helper()
	c := s.chat("work", messages, weather+more, headers...)
	if c.Choices[0].Reason == nil || *c.Choices[0].Reason != "tool_calls" {
		s.t.Fatalf("no calls: %+v", c)
	}
	return c.Choices[0].Message.ToolCalls
}

// history returns the messages of a client after calls, with results.
func history(question string, calls []call, results ...string) string {
	list := make([]string, len(calls))
	for i, c := range calls {
		list[i] = `{"id":` + quote(c.ID) + `,"type":"function","function":{"name":` + quote(c.Function.Name) + `,"arguments":` + quote(c.Function.Arguments) + `}}`
	}
	messages := []string{question, `{"role":"assistant","content":null,"refusal":null,"tool_calls":[` + strings.Join(list, ",") + `]}`}
	for i, r := range results {
		messages = append(messages, `{"role":"tool","tool_call_id":`+quote(calls[i].ID)+`,"content":`+quote(r)+`}`)
	}
	return "[" + strings.Join(messages, ",") + "]"
}

// All calls of one answer of the model are in one response, and the results continue the
// run that waits for them.
func TestTools_RoundTrip(t *testing.T) {
	s := serve(t, nil, server.Options{})
	calls := s.asked("["+question+"]", "")
	if len(calls) != 2 || calls[0].Function.Name != "get_weather" || calls[0].Function.Arguments != `{"city":"Rome"}` || calls[1].Function.Arguments != `{"city":"Oslo"}` {
		t.Fatalf("calls %+v", calls)
	}
	messages := history(question, calls, "sunny", "rain")
	if c := s.chat("work", messages, weather); c.text() != "All results have arrived." || *c.Choices[0].Reason != "stop" {
		t.Errorf("answer %+v", c)
	}
	// The client repeats the request: the answer is the same, and no run begins.
	if c := s.chat("work", messages, weather); c.text() != "All results have arrived." {
		t.Errorf("repeated: %+v", c)
	}
	if n := s.own.Host().Runs.List("", nil); len(n) != 1 {
		t.Errorf("%d runs", len(n))
	}
	// The conversation goes on.
	more := strings.TrimSuffix(messages, "]") + `,{"role":"assistant","content":"All results have arrived."},{"role":"user","content":"thanks"}]`
	if c := s.chat("work", more, weather); !strings.Contains(c.text(), "6 messages") {
		t.Errorf("next turn: %q", c.text())
	}
}

func TestTools_Stream(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/chat/completions", `{"model":"work","stream":true,"messages":[`+question+`]`+weather+`}`)
	var calls []call
	frames := r.frames()
	for _, f := range frames[:len(frames)-1] {
		var c completion
		reply{body: f}.into(t, &c)
		calls = append(calls, c.Choices[0].Delta.ToolCalls...)
	}
	if len(calls) != 2 || !strings.Contains(frames[len(frames)-2], `"finish_reason":"tool_calls"`) || frames[len(frames)-1] != "[DONE]" {
		t.Fatalf("stream\n%s", strings.Join(frames, "\n"))
	}
	r = s.post("/v1/chat/completions", `{"model":"work","stream":true,"messages":`+history(question, calls, "sunny", "rain")+weather+`}`)
	if text := strings.Join(r.frames(), "\n"); strings.Count(text, `"content":"All "`) != 1 || strings.Contains(text, "tool_calls") || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("continued stream\n%s", text)
	}
}

// Tools of the application run on the server and are invisible to the client.
func TestTools_Mixed(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const both = `{"role":"user","content":"stock and weather in Rome"}`
	calls := s.asked("["+both+"]", "")
	if len(calls) != 1 || calls[0].Function.Name != "get_weather" {
		t.Fatalf("calls %+v", calls)
	}
	if c := s.chat("work", history(both, calls, "sunny"), weather); c.text() != "All results have arrived." {
		t.Errorf("answer %+v", c)
	}
	if c := s.chat("work", `[{"role":"user","content":"stock of Emma"}]`, weather); c.text() != "All results have arrived." || c.Choices[0].Message.ToolCalls != nil {
		t.Errorf("server tool: %+v", c)
	}
}

// parallel_tool_calls: false gives one call after the other.
func TestTools_NotParallel(t *testing.T) {
	s := serve(t, nil, server.Options{})
	const one = `,"parallel_tool_calls":false`
	var all []string
	calls := s.asked("["+question+"]", one)
	for len(all) < 2 {
		if len(calls) != 1 {
			t.Fatalf("calls %+v", calls)
		}
		all = append(all, calls[0].Function.Arguments)
		c := s.chat("work", history(question, calls, "fine"), weather+one)
		if calls = c.Choices[0].Message.ToolCalls; calls == nil && c.text() != "All results have arrived." {
			t.Errorf("answer %+v", c)
		}
	}
	if !slices.Equal(all, []string{`{"city":"Rome"}`, `{"city":"Oslo"}`}) || calls != nil {
		t.Errorf("calls %v, then %v", all, calls)
	}
}

// A session has the calls and results; the client may send only the results.
func TestTools_Session(t *testing.T) {
	s := serve(t, nil, server.Options{})
	calls := s.asked("["+question+"]", "", "X-Session-Id", "tools")
	results := `[{"role":"tool","tool_call_id":` + quote(calls[0].ID) + `,"content":"a"},{"role":"tool","tool_call_id":` + quote(calls[1].ID) + `,"content":[{"type":"text","text":"b"}]}]`
	if c := s.chat("work", results, weather, "X-Session-Id", "tools"); c.text() != "All results have arrived." {
		t.Errorf("answer %+v", c)
	}
	w, err := s.app.Memory("notes").Window(t.Context(), "tools")
	if err != nil || len(w.Messages()) != 5 {
		t.Errorf("window %v, %v", w.Messages(), err)
	}
}

// A client that does not answer the calls ends the run that waits for it.
func TestTools_Abandoned(t *testing.T) {
	s := serve(t, nil, server.Options{})
	calls := s.asked("["+question+"]", "")
	messages := history(question, calls, "sunny", "rain")
	c := s.chat("work", strings.TrimSuffix(messages, "]")+`,{"role":"user","content":"never mind"}]`, weather)
	if !strings.Contains(c.text(), "never mind") {
		t.Errorf("answer %q", c.text())
	}
	s.asked("["+question+"]", "", "X-Session-Id", "left")
	if c := s.chat("work", `[{"role":"user","content":"hello"}]`, weather, "X-Session-Id", "left"); !strings.Contains(c.text(), "hello") {
		t.Errorf("answer %q", c.text())
	}
	for _, run := range s.own.Host().Runs.List("", nil) {
		if status := run.State().Status; status == runs.Waiting {
			t.Errorf("run %s is %s", run.ID, status)
		}
	}
}

func TestTools_UnknownCalls(t *testing.T) {
	s := serve(t, nil, server.Options{})
	calls := s.asked("["+question+"]", "")
	other := s.asked("["+question+"]", "")
	for name, tt := range map[string]struct{ model, messages, code string }{
		"foreign":        {"work", history(question, []call{{ID: "call_abc"}}, "x"), "unknown_tool_call"},
		"expired":        {"work", history(question, []call{{ID: "call_ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789abcdef-0"}}, "x"), "unknown_tool_call"},
		"no request":     {"work", history(question, []call{{ID: calls[0].ID + "7"}}, "x"), "unknown_tool_call"},
		"another flow":   {"talk", history(question, calls, "x", "y"), "unknown_tool_call"},
		"two runs":       {"work", history(question, []call{calls[0], other[0]}, "x", "y"), "unknown_tool_call"},
		"missing result": {"work", history(question, calls, "x"), "missing_tool_result"},
	} {
		more := weather
		if tt.model == "talk" {
			more = ""
		}
		r := s.post("/v1/chat/completions", `{"model":"`+tt.model+`","messages":`+tt.messages+more+`}`)
		var f failure
		r.into(t, &f)
		if r.status != http.StatusBadRequest || f.Error.Code != tt.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	// The run still waits.
	if c := s.chat("work", history(question, calls, "a", "b"), weather); c.text() != "All results have arrived." {
		t.Errorf("answer %+v", c)
	}
}

// A run that waits continues in the process that receives the results.
func TestTools_OtherProcess(t *testing.T) {
	store := memory.NewInProcess()
	first := serve(t, store, server.Options{})
	calls := first.asked("["+question+"]", "", "X-Session-Id", "moved")
	second := serve(t, store, server.Options{})

	// The first process is alive and continues the run.
	alive := second.chat("work", history(question, calls, "sunny", "rain"), weather, "X-Session-Id", "moved")
	if alive.text() != "All results have arrived." {
		t.Errorf("answer %+v", alive)
	}
	// The first process shuts down.
	calls = first.asked("["+question+"]", "", "X-Session-Id", "moved again")
	if err := first.own.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := second.post("/v1/chat/completions", `{"model":"work","stream":true,"messages":`+history(question, calls, "sunny", "rain")+weather+`}`, "X-Session-Id", "moved again")
	if text := strings.Join(r.frames(), "\n"); strings.Count(text, `"content":"All "`) != 1 || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("continued stream %d\n%s", r.status, r.body)
	}
}

// A tool of the client must not have the name of a tool of the application.
func TestTools_NameTaken(t *testing.T) {
	s := serve(t, nil, server.Options{})
	r := s.post("/v1/chat/completions", `{"model":"work","messages":[`+question+`],"tools":[{"type":"function","function":{"name":"find_stock"}}]}`)
	var f failure
	r.into(t, &f)
	if r.status != http.StatusBadRequest || f.Error.Param == nil || *f.Error.Param != "tools[0].function.name" {
		t.Errorf("%d %s", r.status, r.body)
	}
}
