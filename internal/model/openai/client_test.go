package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server sends the next of its responses to each request and records the requests.
type server struct{ *modeltest.Server }

func serve(t *testing.T, answers ...http.HandlerFunc) server {
	t.Helper()
	return server{modeltest.Serve(t, answers...)}
}

// talk makes a client of the server, with retries.
func (s server) talk(t *testing.T, change func(*openai.Config, *model.CallPolicy)) model.Chat {
	t.Helper()
	c := openai.Config{Info: model.Info{ID: "gpt", Provider: "openai", Name: "gpt-6-sol"}, BaseURL: s.URL + "/v1",
		Key: "sk-proj-very-secret-0123456789", Credential: "OPENAI_API_KEY", HTTP: s.Client()}
	p := model.CallPolicy{Timeout: time.Minute, MaxAttempts: 3, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Second}
	if change != nil {
		change(&c, &p)
	}
	made, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return model.WithRetry(made, p)
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return modeltest.Respond(code, "application/json", body, header...)
}

const hello = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello.","refusal":null},"logprobs":null,"finish_reason":"stop"}],
"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0}}}`

// sse streams events; the last argument "cut" ends without a closing chunk.
func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			if e == "cut" {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "data: %s\n\n", e)
			w.(http.Flusher).Flush()
		}
	}
}

func delta(text string) string {
	raw, _ := json.Marshal(text) // a string always encodes
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":` + string(raw) + `},"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func ask(text string) model.Request {
	return model.Request{Messages: []chat.Message{chat.Text(chat.User, text)}}
}

// ignoreIDs ignores ids, which differ from call to call.
var ignoreIDs = cmpopts.IgnoreFields(chat.Message{}, "ID")

func TestRequest_Conversation(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			answer := status(200, hello)
			if stream {
				answer = sse(delta("Hel"), delta("lo."), finish("stop"),
					`{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16}}}`, "[DONE]")
			}
			s := serve(t, answer)
			m := s.talk(t, func(c *openai.Config, _ *model.CallPolicy) {
				c.Params = map[string]any{"top_p": 0.5, "max_tokens": 100, "metadata": map[string]any{"a": "b"}}
			})
			req := model.Request{Stream: stream, Messages: []chat.Message{
				chat.Text(chat.System, "You answer for a bookshop."),
				chat.Text(chat.User, "one"), chat.Text(chat.Chatbot, "first <answer>"),
				chat.Text(chat.User, "two"), chat.Text(chat.Assistant, "second"),
				{Role: chat.User, Name: "Ann Lee", Blocks: []chat.Block{{Type: "text", Text: "three"}}},
			}}
			var deltas []string
			got, err := model.Call(t.Context(), m, req, func(ev model.Event) { deltas = append(deltas, ev.Text) })
			if err != nil {
				t.Fatal(err)
			}
			want := &model.Response{Message: chat.Text(chat.Assistant, "Hello."), Finish: "stop", Usage: model.Usage{Input: 20, Output: 3, Cached: 16}}
			if d := cmp.Diff(want, got, ignoreIDs); d != "" {
				t.Error(d)
			}
			body := map[string]any{"model": "gpt-6-sol", "top_p": 0.5, "max_tokens": 100.0, "metadata": map[string]any{"a": "b"},
				"messages": []any{
					map[string]any{"role": "system", "content": "You answer for a bookshop."},
					map[string]any{"role": "user", "content": "one"}, map[string]any{"role": "assistant", "content": "first <answer>"},
					map[string]any{"role": "user", "content": "two"}, map[string]any{"role": "assistant", "content": "second"},
					map[string]any{"role": "user", "content": "three", "name": "Ann_Lee"},
				}}
			if stream {
				body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
				if d := cmp.Diff([]string{"Hel", "lo."}, deltas); d != "" {
					t.Error(d)
				}
			}
			if d := cmp.Diff(body, s.Requests()[0].Body); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
			if s.Requests()[0].Path != "/v1/chat/completions" || s.Requests()[0].Header.Get("Authorization") != "Bearer sk-proj-very-secret-0123456789" {
				t.Errorf("called %s with %q", s.Requests()[0].Path, s.Requests()[0].Header.Get("Authorization"))
			}
		})
	}
}

func TestRequest_ToolsAndResults(t *testing.T) {
	s := serve(t, status(200, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[
		{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"id\": 1}"}},
		{"id":"c2","type":"function","function":{"name":"find","arguments":{"id":2}}},
		{"type":"function","function":{"name":"now","arguments":""}}]},"finish_reason":"tool_calls"}]}`))
	m := s.talk(t, func(c *openai.Config, _ *model.CallPolicy) { c.Key = "" })
	req := ask("where?")
	req.Messages = append(req.Messages,
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "c0", Name: "find", Arguments: `{"id":0}`}),
		chat.Message{Role: chat.Function, ToolCallID: "c0", Blocks: []chat.Block{{Type: "text", Text: "lost"}}})
	req.Tools = []model.Tool{{Name: "find", Description: "Finds an order.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}}}`)}, {Name: "now"}}
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Finish != "tool_calls" || len(got.Message.Calls()) != 3 || len(got.Message.Blocks) != 3 {
		t.Fatalf("got %+v", got)
	}
	calls := got.Message.Calls()
	if calls[0].Arguments != `{"id": 1}` || calls[1].Arguments != `{"id":2}` || calls[2].Arguments != "{}" {
		t.Errorf("arguments: %+v", calls)
	}
	if calls[2].ID == "" || calls[2].ID == calls[0].ID {
		t.Errorf("a call without an id got %q", calls[2].ID)
	}
	want := []any{
		map[string]any{"role": "user", "content": "where?"},
		map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "c0", "type": "function",
			"function": map[string]any{"name": "find", "arguments": `{"id":0}`}}}},
		map[string]any{"role": "tool", "content": "lost", "tool_call_id": "c0"},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"]); d != "" {
		t.Error(d)
	}
	tools := []any{
		map[string]any{"type": "function", "function": map[string]any{"name": "find", "description": "Finds an order.",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"id": map[string]any{"type": "integer"}}}}},
		map[string]any{"type": "function", "function": map[string]any{"name": "now", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}},
	}
	if d := cmp.Diff(tools, s.Requests()[0].Body["tools"]); d != "" {
		t.Error(d)
	}
	if _, sent := s.Requests()[0].Header["Authorization"]; sent {
		t.Error("an Authorization header was sent without a key")
	}
	for _, unset := range []string{"temperature", "stream", "stream_options", "max_tokens"} {
		if v, sent := s.Requests()[0].Body[unset]; sent {
			t.Errorf("%s was sent as %v though nothing sets it", unset, v)
		}
	}
}

func TestStream_InterleavedToolCalls(t *testing.T) {
	call := func(s string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + s + `]},"finish_reason":null}]}`
	}
	want := []chat.ToolCall{{ID: "a", Name: "find", Arguments: `{"x":1}`}, {ID: "b", Name: "look", Arguments: `{"y":2}`}}
	tests := map[string][]string{
		"interleaved by index": {
			call(`{"index":0,"id":"a","type":"function","function":{"name":"find","arguments":""}}`),
			call(`{"index":1,"id":"b","type":"function","function":{"name":"look","arguments":""}}`),
			call(`{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"function":{"arguments":"{\"y\""}}`),
			call(`{"index":1,"function":{"arguments":":2}"}}`), call(`{"index":0,"function":{"arguments":"1}"}}`)},
		"every index 0, ids differ": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"look","arguments":"{\"y\":2}"}}`)},
		"no index": {
			call(`{"id":"a","function":{"name":"find","arguments":"{\"x\""}}`), call(`{"function":{"arguments":":1}"}}`),
			call(`{"id":"b","function":{"name":"look","arguments":"{\"y\""}}`), call(`{"function":{"arguments":":2}"}}`)},
		"id repeated": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\""}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":"{\"y\""}}`),
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":":1}"}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":":2}"}}`)},
		"id after the index": {
			call(`{"index":0,"function":{"name":"find","arguments":""}}`), call(`{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`),
			call(`{"index":1,"function":{"name":"look","arguments":"{\"y\""}}`), call(`{"index":1,"id":"b","function":{"arguments":":2}"}}`)},
		"a new id with each part": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":""}}`), call(`{"index":0,"id":"a2","function":{"arguments":"{\"x\":"}}`),
			call(`{"index":0,"id":"a3","function":{"name":"find","arguments":"1}"}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":"{\"y\""}}`), call(`{"index":1,"id":"b2","function":{"name":"","arguments":":2}"}}`)},
		"every index 0, in parts": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":"}}`), call(`{"index":0,"function":{"arguments":"1}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"look","arguments":""}}`), call(`{"index":0,"function":{"arguments":"{\"y\":2}"}}`)},
		"an empty end that repeats id and name": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}`), call(`{"index":0,"id":"a","function":{"name":"find","arguments":""}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":"{\"y\":2}"}}`), call(`{"index":1,"id":"b","function":{"name":"look","arguments":""}}`)},
		"an end without arguments, a null name": {
			call(`{"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}`), call(`{"id":"a","function":{"name":"find"}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":"{\"y\":2}"}}`), call(`{"index":1,"function":{"name":"look","arguments":""}}`)},
		"the whole call twice": {
			call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}`), call(`{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}`),
			call(`{"index":1,"id":"b","function":{"name":"look","arguments":"{\"y\":2}"}}`)},
		"index as text, name in parts": {
			call(`{"index":"0","id":"a","function":{"name":"fi","arguments":""}}`), call(`{"index":"0","function":{"name":"nd","arguments":"{\"x\":1}"}}`),
			call(`{"index":"1","id":"b","function":{"arguments":""}}`), call(`{"index":"1","function":{"name":"look","arguments":"{\"y\":2}"}}`)},
	}
	for name, events := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, sse(append(events, finish("tool_calls"), "[DONE]")...))
			req := ask("x")
			req.Stream = true
			var text string
			got, err := model.Call(t.Context(), s.talk(t, nil), req, func(ev model.Event) { text += ev.Text })
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got.Message.Calls()); d != "" || text != "" {
				t.Errorf("text %q, calls (-want +got):\n%s", text, d)
			}
		})
	}
}

// A blank end of the arguments belongs to the call whose id it has.
func TestStream_BlankEndOfArguments(t *testing.T) {
	s := serve(t, sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"now","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"now","arguments":" \n"}}]}}]}`, finish("tool_calls"), "[DONE]"))
	req := ask("x")
	req.Stream = true
	got, err := model.Call(t.Context(), s.talk(t, nil), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if calls := got.Message.Calls(); len(calls) != 1 || strings.TrimSpace(calls[0].Arguments) != "{}" {
		t.Errorf("the calls are %+v", calls)
	}
}

func TestStream_CallsWithoutIDs(t *testing.T) {
	call := func(index int, name, arguments string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"name":%q,"arguments":%q}}]}}]}`, index, name, arguments)
	}
	same := `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"find","arguments":"{\"x\":1}"}},{"index":1,"id":"c","function":{"name":"look","arguments":"{\"y\":2}"}}]}}]}`
	for name, events := range map[string][]string{
		"every index 0":  {call(0, "find", `{"x":1}`), call(0, "look", `{"y":2}`)},
		"indexes":        {call(0, "find", `{"x":1}`), call(1, "look", `{"y"`), call(1, "", `:2}`)},
		"the id is same": {same},
	} {
		s := serve(t, sse(append(events, finish("tool_calls"), "[DONE]")...))
		req := ask("x")
		req.Stream = true
		got, err := model.Call(t.Context(), s.talk(t, nil), req, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []chat.ToolCall{{Name: "find", Arguments: `{"x":1}`}, {Name: "look", Arguments: `{"y":2}`}}
		if d := cmp.Diff(want, got.Message.Calls(), cmpopts.IgnoreFields(chat.ToolCall{}, "ID")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// The older form of a call, whole and in pieces.
func TestResponse_FunctionCall(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"whole":  status(200, `{"choices":[{"message":{"content":null,"function_call":{"name":"find","arguments":"{\"x\":1}"}},"finish_reason":"function_call"}]}`),
		"pieces": sse(`{"choices":[{"delta":{"function_call":{"name":"find","arguments":""}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"{\"x\":"}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}`, finish("function_call"), "[DONE]"),
		"both":   sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"find","arguments":"{\"x\":1}"}}],"function_call":{"name":"find","arguments":"{\"x\":1}"}}}]}`, finish("tool_calls"), "[DONE]"),
	} {
		req := ask("x")
		req.Stream = name != "whole"
		got, err := model.Call(t.Context(), serve(t, answer).talk(t, nil), req, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []chat.ToolCall{{Name: "find", Arguments: `{"x":1}`}}
		if d := cmp.Diff(want, got.Message.Calls(), cmpopts.IgnoreFields(chat.ToolCall{}, "ID")); d != "" || got.Finish != "tool_calls" {
			t.Errorf("%s: finish %s (-want +got):\n%s", name, got.Finish, d)
		}
	}
}

// TestResponse_LooseTypes has answers of servers with other types than the protocol's.
func TestResponse_LooseTypes(t *testing.T) {
	answer := func(finish, usage string) string {
		return `{"choices":[{"index":1,"message":{"role":"assistant","content":"fine"},"finish_reason":` + finish + `}],"usage":` + usage + `}`
	}
	for name, tt := range map[string]struct {
		answer        http.HandlerFunc
		input, output int
	}{
		"counts with fractions": {status(200, answer(`"stop"`, `{"prompt_tokens":12.0,"completion_tokens":3.5,"prompt_tokens_details":null}`)), 12, 3},
		"counts as text":        {status(200, answer(`"stop"`, `{"prompt_tokens":"12","completion_tokens":"3"}`)), 12, 3},
		"counts that are none":  {status(200, answer(`"stop"`, `{"prompt_tokens":{},"completion_tokens":-3,"prompt_tokens_details":{"cached_tokens":"x"}}`)), 0, 0},
		"usage that is a list":  {status(200, answer(`"stop"`, `[]`)), 0, 0},
		"details are a list":    {status(200, answer(`"stop"`, `{"prompt_tokens_details":[],"prompt_tokens":12,"completion_tokens":3}`)), 12, 3},
		"a number of a reason":  {status(200, answer(`2`, `null`)), 0, 0},
		"created":               {status(201, answer(`"stop"`, `{"prompt_tokens":12,"completion_tokens":3}`)), 12, 3},
		"the type of events":    {raw("text/event-stream", answer(`"stop"`, `null`)), 0, 0},
		"one part of content":   {status(200, `{"choices":[{"message":{"content":{"type":"text","text":"fine"}}}]}`), 0, 0},
	} {
		s := serve(t, tt.answer)
		got, err := model.Call(t.Context(), s.talk(t, nil), ask("x"), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Message.Text() != "fine" || got.Finish != "stop" || got.Usage.Input != tt.input || got.Usage.Output != tt.output {
			t.Errorf("%s: %q, %s, %+v", name, got.Message.Text(), got.Finish, got.Usage)
		}
	}
}

func TestResponse_ServerVariations(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		want   string
		finish string
	}{
		"no [DONE]":                 {sse(delta("Hi"), finish("stop")), "Hi", "stop"},
		"no finish reason":          {sse(delta("Hi"), "[DONE]"), "Hi", "stop"},
		"cut behind the finish":     {sse(delta("Hi"), finish("length"), "cut"), "Hi", "length"},
		"one piece for a stream":    {status(200, hello), "Hello.", "stop"},
		"signs of life":             {sse("", delta("Hi"), "", finish("stop"), "[DONE]"), "Hi", "stop"},
		"a second choice":           {sse(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, delta("Hi"), finish("stop"), "[DONE]"), "Hi", "stop"},
		"refusal":                   {sse(`{"choices":[{"delta":{"refusal":"I cannot."}}]}`, finish("stop"), "[DONE]"), "I cannot.", "content_filter"},
		"parts":                     {sse(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]}}]}`, finish("stop")), "Hi", "stop"},
		"empty text":                {sse(`{"choices":[{"delta":{"role":"assistant"}}]}`, finish("stop"), "[DONE]"), "", "stop"},
		"CRLF, comments, event ids": {raw("text/event-stream", ": ping\r\n\r\nid: 1\r\nevent: message\r\ndata:"+delta("Hi")+"\r\n\r\ndata: [DONE]\r\n\r\n"), "Hi", "stop"},
		"an event of two lines":     {raw("text/event-stream", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"), "Hi", "stop"},
		"no content type":           {raw("", "data: "+delta("Hi")+"\n\ndata: [DONE]\n\n"), "Hi", "stop"},
		"an error that is null":     {sse(`{"error":null,"choices":[{"delta":{"content":"Hi"}}]}`, finish("stop"), "[DONE]"), "Hi", "stop"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answer)
			req := ask("x")
			req.Stream = true
			got, err := model.Call(t.Context(), s.talk(t, nil), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Message.Text() != tt.want || got.Finish != tt.finish || s.Calls() != 1 {
				t.Errorf("got %q, %s after %d calls", got.Message.Text(), got.Finish, s.Calls())
			}
		})
	}
}

func raw(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, body)
	}
}

// Servers that send reasoning between the characters of an answer do not divide its text.
func TestStream_ReasoningWithinText(t *testing.T) {
	both := func(text, field string) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"content":%q,%q:"r"}}]}`, text, field)
	}
	for name, events := range map[string][]string{
		"with each character": {both("h", "reasoning_content"), both("e", "reasoning_content"), both("y", "reasoning_content")},
		"only later":          {delta("h"), both("e", "reasoning"), delta("y")},
		"of two fields":       {both("he", "reasoning"), both("y", "reasoning_content")},
	} {
		s := serve(t, sse(append(events, finish("stop"), "[DONE]")...))
		req := ask("x")
		req.Stream = true
		var text, reasoning string
		got, err := model.Call(t.Context(), s.talk(t, nil), req, func(ev model.Event) { text, reasoning = text+ev.Text, reasoning+ev.Reasoning })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var stored string
		for _, b := range got.Message.Blocks {
			if b.Type == chat.ReasoningType {
				stored += b.Text
			}
		}
		if got.Message.Text() != "hey" || text != "hey" || stored != reasoning {
			t.Errorf("%s: the text is %q, the deltas %q, the reasoning %q, its deltas %q", name, got.Message.Text(), text, stored, reasoning)
		}
	}
}

func TestResponse_SeparatesReasoning(t *testing.T) {
	for _, events := range [][]string{
		{`{"choices":[{"delta":{"reasoning_content":"Let me think."}}]}`, delta("42"), finish("stop"), "[DONE]"},
		{delta("<thi"), delta("nk>Let me think."), delta("</"), delta("think>\n\n42"), finish("stop"), "[DONE]"},
	} {
		s := serve(t, sse(events...))
		req := ask("x")
		req.Stream = true
		var thoughts, text string
		var last *model.Response
		for ev, err := range s.talk(t, nil).Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			thoughts, text, last = thoughts+ev.Reasoning, text+ev.Text, ev.Response
		}
		if thoughts != "Let me think." || text != "42" || last.Message.Text() != "42" {
			t.Errorf("thoughts %q, text %q, answer %q", thoughts, text, last.Message.Text())
		}
	}
	s := serve(t, status(200, strings.Replace(hello, "Hello.", `<think>\nThe plan.\n</think>\n\nHello.`, 1)))
	if got, err := model.Call(t.Context(), s.talk(t, nil), ask("x"), nil); err != nil || got.Message.Text() != "Hello." {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestStreamOnly has servers that refuse requests whose answer is not streamed, or stream
// all answers. What the server refuses is not sent again.
func TestStreamOnly(t *testing.T) {
	const refusal = `{"error":{"message":"parameter.enable_thinking must be set to false for non-streaming calls","code":"invalid_parameter_error"}}`
	streamed := sse(delta("streamed"), finish("stop"), "[DONE]")
	s := serve(t, status(400, refusal), streamed, streamed, status(400, refusal))
	m := s.talk(t, nil)
	for range 2 {
		got, err := model.Call(t.Context(), m, ask("x"), func(ev model.Event) { t.Errorf("a delta that was not requested: %+v", ev) })
		if err != nil || got.Message.Text() != "streamed" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if s.Calls() != 3 || s.Requests()[2].Body["stream"] != true {
		t.Errorf("%d calls, the last %v", s.Calls(), s.Requests()[2].Body)
	}
	if _, err := model.Call(t.Context(), m, ask("x"), nil); err == nil || s.Calls() != 4 {
		t.Errorf("a refused stream: %v after %d calls", err, s.Calls())
	}
	other := serve(t, streamed)
	if got, err := model.Call(t.Context(), other.talk(t, nil), ask("x"), nil); err != nil || got.Message.Text() != "streamed" {
		t.Errorf("a stream that was not requested: %+v, %v", got, err)
	}
}

func TestRequest_Media(t *testing.T) {
	s := serve(t, status(200, hello))
	m := s.talk(t, nil)
	_, err := model.Call(t.Context(), m, model.Request{Messages: []chat.Message{{Role: chat.User, Blocks: []chat.Block{
		{Type: "text", Text: "What is this?"}, {Type: "image", Data: []byte("\x89PNG\r\n\x1a\n")},
		{Type: "audio", Data: []byte("RIFF"), MimeType: "audio/wav"}, {Type: "file", Data: []byte("%PDF-1")}}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"type": "text", "text": "What is this?"},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}},
		map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": "UklGRg==", "format": "wav"}},
		map[string]any{"type": "file", "file": map[string]any{"filename": "file", "file_data": "data:application/pdf;base64,JVBERi0x"}},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"].([]any)[0].(map[string]any)["content"]); d != "" {
		t.Error(d)
	}
	_, err = model.Call(t.Context(), m, model.Request{Messages: []chat.Message{{Role: chat.User, Blocks: []chat.Block{
		{Type: "audio", Data: []byte("OggS"), MimeType: "audio/ogg"}}}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "audio/ogg cannot be sent, only wav and mp3") {
		t.Errorf("got %v", err)
	}
}

// Mistral has its own form of sounds and documents, requires parameters of tools and has no videos.
func TestRequest_MediaOfMistral(t *testing.T) {
	s := serve(t, status(200, hello))
	m, err := openai.NewMistral(contractConfig(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}))
	if err != nil {
		t.Fatal(err)
	}
	request := model.Request{Tools: []model.Tool{{Name: "now"}}, Messages: []chat.Message{{Role: chat.User, Blocks: []chat.Block{
		{Type: "text", Text: "What is this?"}, {Type: "image", Data: []byte("\x89PNG\r\n\x1a\n")}, {Type: "audio", Data: []byte("RIFF"), MimeType: "audio/wav"},
		{Type: "file", Data: []byte("%PDF-1")}, {Type: "file", Text: "https://shop.example/a.pdf"}}}}}
	if _, err := model.Call(t.Context(), m, request, nil); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"type": "text", "text": "What is this?"},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}},
		map[string]any{"type": "input_audio", "input_audio": "UklGRg=="},
		map[string]any{"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0x"},
		map[string]any{"type": "document_url", "document_url": "https://shop.example/a.pdf"},
	}
	body := s.Requests()[0].Body
	if d := cmp.Diff(want, body["messages"].([]any)[0].(map[string]any)["content"]); d != "" {
		t.Error(d)
	}
	function := body["tools"].([]any)[0].(map[string]any)["function"]
	if d := cmp.Diff(map[string]any{"name": "now", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}, function); d != "" {
		t.Error(d)
	}
	request.Messages[0].Blocks[1] = chat.Block{Type: "video", Text: "https://shop.example/a.mp4"}
	if _, err := model.Call(t.Context(), m, request, nil); err == nil || !strings.Contains(err.Error(), "videos cannot be sent") {
		t.Errorf("got %v", err)
	}
}

// Tool messages are texts in this protocol: the images of all results follow the last of
// them in one message of the user. Mistral takes them in the tool messages.
func TestRequest_ToolImages(t *testing.T) {
	s := serve(t, status(200, hello))
	m := s.talk(t, nil)
	last := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "file", Data: []byte("Dear shop"), MimeType: "text/plain"}, {Type: "text", Text: "?"}}}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: append(modeltest.ToolImages(), last)}, nil); err != nil {
		t.Fatal(err)
	}
	image := map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}}
	want := []any{
		map[string]any{"role": "tool", "tool_call_id": "call00001", "content": "a plot\n[a sound of type audio/ogg, which cannot be passed to this model]\n[the files of this result are in the next message of the user]"},
		map[string]any{"role": "tool", "tool_call_id": "call00002", "content": "noon"},
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "[files of the result of the tool plot (call00001)]"}, image}},
		map[string]any{"role": "user", "content": "Dear shop\n?"},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"].([]any)[2:]); d != "" {
		t.Error(d)
	}
}

// Mistral's tool messages have images, and a text in place of a sound that it does not accept.
func TestRequest_ToolImagesOfMistral(t *testing.T) {
	s := serve(t, status(200, hello))
	m, err := openai.NewMistral(contractConfig(modeltest.Target{Info: model.Info{ID: "m"}, URL: s.URL, HTTP: s.Client()}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Call(t.Context(), m, model.Request{Messages: modeltest.ToolImages()}, nil); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"type": "text", "text": "a plot"},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,iVBORw0KGgo="}},
		map[string]any{"type": "text", "text": "[a sound of type audio/ogg, which cannot be passed to this model]"},
	}
	if d := cmp.Diff(want, s.Requests()[0].Body["messages"].([]any)[2].(map[string]any)["content"]); d != "" {
		t.Error(d)
	}
}

func TestNew_ReservedParameters(t *testing.T) {
	for _, name := range []string{"messages", "model", "stream", "tools", "n"} {
		_, err := openai.New(openai.Config{Info: model.Info{ID: "gpt"}, BaseURL: "http://h/v1", HTTP: http.DefaultClient, Params: map[string]any{name: 1}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for _, bad := range []string{"", "localhost:11434", "ftp://h", "http://", "::"} {
		if _, err := openai.New(openai.Config{BaseURL: bad, HTTP: http.DefaultClient}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	s := serve(t, status(200, hello))
	for _, base := range []string{"/v1", "/v1/", "/deep/er/v1?api-version=2"} {
		m := s.talk(t, func(c *openai.Config, _ *model.CallPolicy) { c.BaseURL = s.URL + base })
		if _, err := model.Call(t.Context(), m, ask("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"/v1/chat/completions", "/v1/chat/completions", "/deep/er/v1/chat/completions?api-version=2"}
	var paths []string
	for _, r := range s.Requests() {
		paths = append(paths, r.Path)
	}
	if d := cmp.Diff(want, paths); d != "" {
		t.Error(d)
	}
}

func TestGenerate_BreakStopsCall(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(delta("one "))(w, r)
		<-r.Context().Done()
		close(gone)
	})
	req := ask("x")
	req.Stream = true
	for ev, err := range s.talk(t, nil).Generate(t.Context(), req) {
		if err != nil || ev.Text != "one " {
			t.Fatalf("got %+v, %v", ev, err)
		}
		break
	}
	<-gone
}

func TestGenerate_Canceled(t *testing.T) {
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if stream {
				sse(delta("one"))(w, r)
			}
			cancel(errors.New("enough"))
			<-r.Context().Done()
		})
		req := ask("x")
		req.Stream = stream
		_, err := model.Call(ctx, s.talk(t, nil), req, nil)
		if !errors.Is(err, context.Canceled) || s.Calls() != 1 {
			t.Errorf("stream=%v: got %v after %d calls", stream, err, s.Calls())
		}
	}
}

func TestStream_AnsweredWithJSON(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"in one piece"},"finish_reason":"stop"}]}`)
	}))
	defer srv.Close()
	c, err := openai.New(openai.Config{BaseURL: srv.URL, HTTP: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	deltas := ""
	resp, err := model.Call(t.Context(), c, model.Request{Messages: []chat.Message{chat.Text(chat.User, "hi")}, Stream: true}, func(ev model.Event) { deltas += ev.Text })
	if err != nil || resp.Message.Text() != "in one piece" || deltas != "in one piece" {
		t.Errorf("got %v, %q, %v", resp, deltas, err)
	}
}
