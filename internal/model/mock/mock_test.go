package mock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func byWords(text string) int { return len(strings.Fields(text)) }

func build(t *testing.T, rules ...*spec.MockRule) *mock.Model {
	t.Helper()
	m, err := mock.New(&spec.Model{ID: "fake", Provider: "mock", Rules: rules}, mock.Options{Count: byWords})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func talk(texts ...string) model.Request {
	var req model.Request
	for i, text := range texts {
		role := chat.User
		if i%2 == 1 {
			role = chat.Assistant
		}
		req.Messages = append(req.Messages, chat.Text(role, text))
	}
	return req
}

// TestRules_Round checks that a rule can be for one of the calls after a question.
func TestRules_Round(t *testing.T) {
	m := build(t, &spec.MockRule{Round: 2, Text: "second"}, &spec.MockRule{Round: 1, Text: "first"}, &spec.MockRule{Text: "later"})
	messages := []chat.Message{chat.Text(chat.User, "a"), chat.Text(chat.Assistant, "b"), chat.Text(chat.User, "c")}
	for _, want := range []string{"first", "second", "later"} {
		answer, err := model.Call(t.Context(), m, model.Request{Messages: messages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.Message.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		messages = append(messages, answer.Message, chat.Text(chat.Tool, "result"))
	}
}

// TestRules_System checks that an answer can depend on the instructions.
func TestRules_System(t *testing.T) {
	m := build(t, &spec.MockRule{System: "(?i)be (brief)", Match: "why (.*)", Text: "$1: because."},
		&spec.MockRule{System: "say (?P<word>.*)", Match: "(why)", Text: "${word}, $1 $2"}, &spec.MockRule{Text: "It is a long story."})
	for system, want := range map[string]string{"": "It is a long story.", "Be kind.": "It is a long story.", "Be kind.\nBe brief.": "it rains: because.", "say yes": "yes, why $2"} {
		req := talk("why it rains")
		for line := range strings.Lines(system) {
			req.Messages = append([]chat.Message{chat.Text(chat.System, line)}, req.Messages...)
		}
		answer, err := model.Call(t.Context(), m, req, nil)
		if err != nil || answer.Message.Text() != want {
			t.Errorf("%q: got %q, %v, want %q", system, answer.Message.Text(), err, want)
		}
	}
	if _, err := mock.New(&spec.Model{ID: "fake", Provider: "mock", Rules: []*spec.MockRule{{System: "(", Text: "x"}}}, mock.Options{}); err == nil || !strings.Contains(err.Error(), "system") {
		t.Errorf("got %v", err)
	}
}

func TestRules(t *testing.T) {
	rules := []*spec.MockRule{
		{Match: `(?i)where is (?P<what>\w+) (\d+)`, Text: "${what} $2 is on its way; it cost $10, $${what} or $1x, ${none}."},
		{Match: "down", Error: "the line to $0 is down", Status: 503},
		{Match: "bye", Text: "Bye for $1."},
		{Match: "echo", Echo: true},
		{After: "tool", Text: "Found by the tool."},
		{Match: "^hi", Text: "Hello, it costs $5."},
	}
	after := func(role chat.Role, req model.Request) model.Request {
		req.Messages = append(req.Messages, chat.Text(role, "result"))
		return req
	}
	tests := map[string]struct {
		req  model.Request
		want string
	}{
		"captures":           {talk("Where is parcel 7?"), "parcel 7 is on its way; it cost $10, ${what} or parcelx, ${none}."},
		"newest user":        {talk("where is parcel 1", "hm", "where is parcel 2"), "parcel 2 is on its way; it cost $10, ${what} or parcelx, ${none}."},
		"no such group":      {talk("bye"), "Bye for $1."},
		"no pattern, no $":   {talk("hi"), "Hello, it costs $5."},
		"after tool":         {after(chat.Tool, talk("anything")), "Found by the tool."},
		"after function":     {after(chat.Function, talk("anything")), "Found by the tool."},
		"first rule wins":    {after(chat.Tool, talk("bye")), "Bye for $1."},
		"echo":               {talk("one", "two words", "echo this back"), `[mock] I received 3 messages (18 tokens). The newest one: "echo this back"`},
		"no rule":            {talk("nonsense"), `[mock] I received 1 message (5 tokens). The newest one: "nonsense"`},
		"nothing to answer":  {model.Request{}, `[mock] I received 0 messages (0 tokens).`},
		"old words stay old": {talk("hi", "x", "something else"), `[mock] I received 3 messages (16 tokens). The newest one: "something else"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := model.Call(t.Context(), build(t, rules...), tt.req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Message.Text() != tt.want || got.Finish != "stop" || got.Message.Role != chat.Assistant {
				t.Errorf("got  %s (%s)\nwant %s", got.Message.Text(), got.Finish, tt.want)
			}
			if got.Usage.Output != byWords(tt.want) || got.Message.ID == "" {
				t.Errorf("usage %+v, id %q", got.Usage, got.Message.ID)
			}
		})
	}
	_, err := model.Call(t.Context(), build(t, rules...), talk("down"), nil)
	var e *model.Error
	if !errors.As(err, &e) || err.Error() != "model fake: HTTP 503: [mock] the line to down is down" || !e.Temporary {
		t.Errorf("got %v", err)
	}
}

func TestToolCalls(t *testing.T) {
	m := build(t, &spec.MockRule{After: "user", Match: `order (\d+) and (?P<other>\d+)`, ToolCalls: []*spec.MockToolCall{
		{Name: "find", Arguments: map[string]any{"id": "$1", "deep": map[string]any{"list": []any{"${other}", 3, true, nil}}}},
		{Name: "find", Arguments: map[string]any{"id": "$2"}}, {Name: "now"}}})
	call := func(req model.Request) *model.Response {
		got, err := model.Call(t.Context(), m, req, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, again := call(talk("order 1 and 2")), call(talk("order 1 and 2"))
	if d := cmp.Diff(first.Message.Calls(), again.Message.Calls()); d != "" {
		t.Errorf("the same conversation got other calls:\n%s", d)
	}
	var got []string
	ids := map[string]bool{}
	later := call(talk("order 1 and 2", "found", "order 1 and 2"))
	for _, c := range append(first.Message.Calls(), later.Message.Calls()...) {
		ids[c.ID] = true
		got = append(got, c.Name+c.Arguments)
	}
	if len(ids) != 6 || first.Finish != "tool_calls" || first.Message.Text() != "" {
		t.Errorf("ids %v, answer %+v", ids, first)
	}
	want := []string{`find{"deep":{"list":["2",3,true,null]},"id":"1"}`, `find{"id":"2"}`, `now{}`}
	if d := cmp.Diff(append(want, want...), got); d != "" {
		t.Error(d)
	}
}

func TestNew_InvalidRules(t *testing.T) {
	unclear := "set exactly one of text, tool_calls, error and echo"
	tests := []struct {
		rule *spec.MockRule
		want string
	}{
		{&spec.MockRule{Text: "a", Echo: true}, unclear},
		{&spec.MockRule{Match: "a"}, unclear},
		{&spec.MockRule{Match: "(", Text: "a"}, "match \"(\" is not a regular expression: missing closing ): `(`"},
		{&spec.MockRule{Match: "a{2,1}", Text: "a"}, "match \"a{2,1}\" is not a regular expression: invalid repeat count: `{2,1}`"},
	}
	for _, tt := range tests {
		_, err := mock.New(&spec.Model{ID: "fake", Rules: []*spec.MockRule{{Echo: true}, tt.rule}}, mock.Options{})
		if want := "mock model fake: rule 2: " + tt.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestInfo(t *testing.T) {
	m, err := mock.New(&spec.Model{ID: "fake", Provider: "mock"}, mock.Options{Replaces: &spec.Model{ID: "gpt", Provider: "openai",
		ModelID: "gpt-5.4-mini", InferenceParams: map[string]any{"max_tokens": 7}}})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Info{ID: "fake", Provider: "mock", Name: "fake", Encoding: "o200k_base", ContextWindow: 272_007, MaxTokens: 7, Mock: true, Replaces: "gpt"}
	if d := cmp.Diff(want, m.Info()); d != "" {
		t.Error(d)
	}
}

func TestGenerate_StreamsWords(t *testing.T) {
	m := build(t, &spec.MockRule{Match: "(?s)(.*)", Text: "$1"})
	var words []string
	req := talk("one  two\nthree ")
	req.Stream = true
	if _, err := model.Call(t.Context(), m, req, func(ev model.Event) { words = append(words, ev.Text) }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"one  ", "two\n", "three "}, words); d != "" {
		t.Error(d)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		joined := ""
		got, err := model.Call(context.Background(), m, model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, text)}},
			func(ev model.Event) { joined += ev.Text })
		if err != nil || joined != text || got.Message.Text() != text {
			t.Fatalf("%q became %q, %v", text, joined, err)
		}
	})
}

func TestGenerate_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	req := talk("one two three")
	req.Stream = true
	var heard int
	_, err := model.Call(ctx, build(t), req, func(model.Event) { heard++; cancel() })
	if !errors.Is(err, context.Canceled) || heard != 1 {
		t.Errorf("got %v after %d words", err, heard)
	}
	if _, err := model.Call(ctx, build(t), req, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
