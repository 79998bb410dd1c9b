package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Run checks a client against the contract.
func Run(t *testing.T, w Wire) {
	for _, stream := range []bool{false, true} {
		name := map[bool]string{false: "whole", true: "stream"}[stream]
		t.Run(name+"/conversation", func(t *testing.T) { w.conversation(t, stream) })
		t.Run(name+"/tools", func(t *testing.T) { w.tools(t, stream) })
		t.Run(name+"/length", func(t *testing.T) { w.length(t, stream) })
		t.Run(name+"/failures", func(t *testing.T) { w.failures(t, stream) })
		t.Run(name+"/at once", func(t *testing.T) { w.atOnce(t, stream) })
	}
	t.Run("reasoning", w.reasoning)
	t.Run("one text", w.oneText)
	t.Run("truncated", w.cut)
	t.Run("error in a stream", w.broken)
	t.Run("cancelled", w.cancelled)
	t.Run("unreachable", w.unreachable)
	t.Run("addresses", w.addresses)
}

// conversation: all messages arrive in order, and the answer is returned.
func (w Wire) conversation(t *testing.T, stream bool) {
	s := Serve(t, w.answers(Answer{Chunks: []string{"Good ", "morning,", "\n ", "Ädä."}, Input: 21, Output: 5}, stream))
	req := model.Request{Stream: stream, Messages: []chat.Message{
		chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "I am Ada <>&."), chat.Text(chat.Chatbot, "Hello."), chat.Text(chat.User, "Who am I?"),
	}}
	var deltas strings.Builder
	got, err := model.Call(t.Context(), w.open(t, s), req, func(ev model.Event) { deltas.WriteString(ev.Text) })
	if err != nil {
		t.Fatal(err)
	}
	const text = "Good morning,\n Ädä."
	want := &model.Response{Message: chat.Message{Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: text}}}, Finish: "stop", Usage: model.Usage{Input: 21, Output: 5}}
	if got.Message.ID == "" {
		t.Error("the answer has no id")
	}
	got.Message.ID = ""
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if stream && deltas.String() != text {
		t.Errorf("the deltas are %q", deltas.String())
	}
	sent := w.Parse(t, s.Requests()[0])
	if d := cmp.Diff(Conversation{Key: key, Model: "some-model", System: "Be brief.", Stream: stream, Temperature: 0.5, MaxTokens: 77.0,
		Messages: []string{"user: I am Ada <>&.", "assistant: Hello.", "user: Who am I?"}}, sent); d != "" {
		t.Error(d)
	}
}

// tools: the model gets their declarations, two calls of one answer are separate, and
// their results are sent.
func (w Wire) tools(t *testing.T, stream bool) {
	calls := []chat.ToolCall{{ID: "call_one_1", Name: "weather", Arguments: `{"city":"Köln","days":[1,2]}`}, {ID: "call_two_2", Name: "now", Arguments: `{}`}}
	s := Serve(t, w.answers(Answer{Chunks: []string{"Let me see."}, Calls: calls, Input: 9, Output: 9}, stream),
		w.answers(Answer{Chunks: []string{"Rain."}, Input: 30, Output: 2}, stream))
	req := model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "Köln?")}, Tools: []model.Tool{
		{Name: "weather", Description: "Returns the weather.", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}, {Name: "now"}}}
	m := w.open(t, s)
	got, err := model.Call(t.Context(), m, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := got.Message.Calls()
	if len(made) != 2 || got.Finish != "tool_calls" || got.Message.Text() != "Let me see." {
		t.Fatalf("got %+v", got)
	}
	for i, c := range made {
		if c.Name != calls[i].Name || !sameJSON(c.Arguments, calls[i].Arguments) || c.ID == "" || c.ID == made[1-i].ID {
			t.Errorf("call %d is %+v", i, c)
		}
	}
	req.Messages = append(req.Messages, got.Message,
		chat.Message{Role: chat.Tool, ToolCallID: made[0].ID, Blocks: []chat.Block{{Type: "text", Text: "rain"}}},
		chat.Message{Role: chat.Tool, ToolCallID: made[1].ID, Blocks: []chat.Block{{Type: "text", Text: "noon"}}})
	if got, err = model.Call(t.Context(), m, req, nil); err != nil || got.Message.Text() != "Rain." {
		t.Fatalf("got %v, %v", got, err)
	}
	sent := w.Parse(t, s.Requests()[1])
	if d := cmp.Diff([]string{"user: Köln?", "assistant: Let me see.", `assistant calls weather {"city":"Köln","days":[1,2]}`, "assistant calls now {}",
		"result of weather: rain", "result of now: noon"}, sent.Messages); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"weather(city)", "now()"}, sent.Tools); d != "" {
		t.Error(d)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

func (w Wire) length(t *testing.T, stream bool) {
	s := Serve(t, w.answers(Answer{Chunks: []string{"Once upon"}, Length: true, Input: 1, Output: 2}, stream))
	got, err := model.Call(t.Context(), w.open(t, s), question(stream), nil)
	if err != nil || got.Finish != "length" || got.Message.Text() != "Once upon" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func question(stream bool) model.Request {
	return model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "x")}}
}

// errors: they are typed, name the server and its message, never contain the key, and
// are retried where that may help.
func (w Wire) failures(t *testing.T, stream bool) {
	for name, tt := range map[string]struct {
		handler   http.HandlerFunc
		status    int
		temporary bool
		wait      time.Duration
		message   string
		calls     int
	}{
		"credential": {Respond(401, "application/json", w.ErrorBody(401, "bad key "+key)), 401, false, 0, "rejected the credential THE_KEY: bad key ***", 1},
		"error":      {Respond(400, "application/json", w.ErrorBody(400, "prompt is too long")), 400, false, 0, "prompt is too long", 1},
		"busy":       {Respond(429, "application/json", w.ErrorBody(429, "slow down"), "Retry-After", "90"), 429, true, 90 * time.Second, "slow down", 1},
		"down":       {Respond(503, "application/json", w.ErrorBody(503, "try later")), 503, true, 0, "try later", 2},
		"page":       {Respond(200, "text/html", "<html><body>Hello"), 0, false, 0, "web page instead of JSON", 1},
		"nothing":    {Respond(200, "application/json", ""), 0, false, 0, "the response is empty", 1},
		"other JSON": {Respond(200, "application/json", `{"status":"ok"}`), 0, false, 0, ": invalid ", 1},
		"elsewhere":  {Respond(307, "text/plain", "", "Location", "https://elsewhere.example/"), 307, false, 0, "redirects to https://elsewhere.example", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := Serve(t, tt.handler)
			_, err := model.Call(t.Context(), w.open(t, s), question(stream), nil)
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, which is not a model error", err)
			}
			if e.Status != tt.status || e.Temporary != tt.temporary || e.RetryAfter != tt.wait || e.Model != "m" || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("got %+v: %v", e, err)
			}
			if strings.Contains(err.Error(), "very-secret") || !strings.Contains(err.Error(), s.URL) {
				t.Errorf("got %v", err)
			}
			if n := len(s.Requests()); n != tt.calls {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// concurrency: a client is safe for concurrent use.
func (w Wire) atOnce(t *testing.T, stream bool) {
	s := Serve(t, w.answers(Answer{Chunks: []string{"Hello."}}, stream))
	m := w.open(t, s)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got, err := model.Call(t.Context(), m, question(stream), nil); err != nil || got.Message.Text() != "Hello." {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	all.Wait()
}

// reasoning is separate from the answer.
func (w Wire) reasoning(t *testing.T) {
	if !w.Reasoning {
		t.Skip("the protocol has none")
	}
	s := Serve(t, w.answers(Answer{Reasoning: "Hm.", Chunks: []string{"Yes."}}, true))
	var reasoning, text string
	for ev, err := range w.open(t, s).Generate(t.Context(), question(true)) {
		if err != nil {
			t.Fatal(err)
		}
		reasoning, text = reasoning+ev.Reasoning, text+ev.Text
		if ev.Response != nil && ev.Response.Message.Text() != "Yes." {
			t.Errorf("got %+v", ev.Response)
		}
	}
	if reasoning != "Hm." || text != "Yes." {
		t.Errorf("reasoning %q, text %q", reasoning, text)
	}
}

// the deltas of a text are the text of the message, also with reasoning between them.
func (w Wire) oneText(t *testing.T) {
	if !w.Reasoning {
		t.Skip("the protocol has no reasoning")
	}
	first, second := w.Stream(Answer{Reasoning: "Hm.", Chunks: []string{"Good ", "mor"}}), w.Stream(Answer{Reasoning: "So.", Chunks: []string{"ning", "."}})
	s := Serve(t, w.streams(append(first[:len(first)-w.Closing], second...), ""))
	var reasoning, text string
	got, err := model.Call(t.Context(), w.open(t, s), question(true), func(ev model.Event) { reasoning, text = reasoning+ev.Reasoning, text+ev.Text })
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Text() != text || reasoning != "Hm.So." || strings.ReplaceAll(text, chat.TextSeparator, "") != "Good morning." {
		t.Errorf("the text is %q, the deltas %q, the reasoning %q", got.Message.Text(), text, reasoning)
	}
}

// truncated: an answer that is not complete is an error.
func (w Wire) cut(t *testing.T) {
	records := w.Stream(Answer{Chunks: []string{"Good ", "morning."}})
	records = records[:len(records)-w.Closing]
	for _, end := range []string{"truncated", ""} {
		s := Serve(t, w.streams(records, end))
		_, err := model.Call(t.Context(), w.open(t, s), question(true), nil)
		var e *model.Error
		if !errors.As(err, &e) || !e.Temporary || !strings.Contains(err.Error(), "before the answer was complete") {
			t.Errorf("%q: got %v", end, err)
		}
	}
}

func (w Wire) broken(t *testing.T) {
	records := w.Stream(Answer{Chunks: []string{"Good ", "morning."}})
	s := Serve(t, w.streams(append(records[:len(records)-w.Closing:len(records)-w.Closing], w.ErrorRecord), ""))
	_, err := model.Call(t.Context(), w.open(t, s), question(true), nil)
	var e *model.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("got %v", err)
	}
}

// canceled: the call ends with its context, within a stream too, and a reader that stops
// leaves no goroutine behind.
func (w Wire) cancelled(t *testing.T) {
	records := w.Stream(Answer{Chunks: []string{"Good ", "morning."}})
	s := Serve(t, w.streams(records[:len(records)-w.Closing], "hang"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := model.Call(ctx, w.open(t, s), question(true), func(model.Event) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for ev, err := range w.open(t, s).Generate(t.Context(), question(true)) {
		if err != nil || ev.Text != "" {
			break
		}
	}
}

func (w Wire) unreachable(t *testing.T) {
	s := Serve(t, Respond(200, "text/plain", ""))
	m := w.open(t, s)
	s.Close()
	_, err := model.Call(t.Context(), m, question(false), nil)
	var e *model.Error
	if !errors.As(err, &e) || !e.Temporary || e.Attempts != 2 || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

// invalid configurations: addresses that are not URLs, and parameters that the client
// sets itself, are rejected before any call.
func (w Wire) addresses(t *testing.T) {
	for _, url := range []string{"localhost:1234", "ftp://a.example", "http://"} {
		if _, err := w.Open(Target{Info: model.Info{ID: "m"}, URL: url}); err == nil || !strings.Contains(err.Error(), "model m: base_url must be an http or https address") {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, err := w.Open(Target{Info: model.Info{ID: "m"}, URL: "http://a.example", Params: map[string]any{"tools": 1}})
	if err == nil || !strings.Contains(err.Error(), `inference_params must not contain "tools", which qtype sets itself`) {
		t.Errorf("got %v", err)
	}
}
