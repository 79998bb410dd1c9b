package model_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// scripted is a model that answers each call with the next response, then with the last.
type scripted struct {
	info      model.Info
	responses []model.Response
	errs      []error // by call; nil for the response
	requests  []model.Request
}

func (s *scripted) Info() model.Info { return s.info }

func (s *scripted) Generate(_ context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		n := len(s.requests)
		s.requests = append(s.requests, req)
		if n < len(s.errs) && s.errs[n] != nil {
			yield(model.Event{}, s.errs[n])
			return
		}
		r := s.responses[min(n, len(s.responses)-1)]
		if text := r.Message.Text(); req.Stream && text != "" && !yield(model.Event{Text: text}, nil) {
			return
		}
		yield(model.Event{Response: &r}, nil)
	}
}

func reply(text, finish, reason string, calls ...chat.ToolCall) model.Response {
	m := chat.Text(chat.Assistant, text)
	m = m.With(calls...)
	return model.Response{Message: m, Finish: finish, Reason: reason, Usage: model.Usage{Input: 10, Output: 2}}
}

func TestWithTruncation(t *testing.T) {
	cut, end := reply("one ", "length", "max_tokens"), reply("two", "stop", "")
	withCall := reply("", "length", "length", chat.ToolCall{ID: "c", Name: "f", Arguments: `{"a":`})
	tests := []struct {
		name      string
		mode      string
		responses []model.Response
		want      string // the text, or the error
		warned    bool
		calls     int
	}{
		{"complete", "error", []model.Response{end}, "two", false, 1},
		{"default", "", []model.Response{cut}, "error: model m: the answer was cut off at the token limit (finish reason max_tokens); raise max_tokens, or set on_truncation to warn or continue", false, 1},
		{"warn", "warn", []model.Response{cut}, "one ", true, 1},
		{"continue", "continue", []model.Response{cut, cut, end}, "one one two", false, 3},
		{"bounded", "continue", []model.Response{cut}, "error: model m: the answer was cut off at the token limit (finish reason max_tokens) after 9 parts; the model did not come to an end", false, 9},
		{"nothing more", "continue", []model.Response{cut, reply("", "length", "length")}, "error: model m: the answer was cut off at the token limit (finish reason length) after 2 parts; the model did not come to an end", false, 2},
		{"filter", "error", []model.Response{reply("on", "content_filter", "SAFETY")}, "error: model m: the provider's content filter withheld the answer or a part of it (finish reason SAFETY)", false, 1},
		{"filter with a warning", "warn", []model.Response{reply("on", "content_filter", "SAFETY")}, "on", true, 1},
		{"filter is not continued", "continue", []model.Response{reply("on", "content_filter", "SAFETY")}, "error: model m: the provider's content filter withheld the answer or a part of it (finish reason SAFETY)", false, 1},
		{"filter after a part", "continue", []model.Response{cut, reply("", "content_filter", "refusal")}, "error: model m: the provider's content filter withheld the answer or a part of it (finish reason refusal)", false, 2},
		{"empty", "warn", []model.Response{reply("", "length", "length")}, "error: model m: the answer was cut off at the token limit (finish reason length); raise max_tokens: the model wrote no text before it", false, 1},
		{"call", "warn", []model.Response{withCall}, "error: model m: the answer was cut off at the token limit (finish reason length); raise max_tokens: a tool call is incomplete", false, 1},
		{"call is not continued", "continue", []model.Response{withCall}, "error: model m: the answer was cut off at the token limit (finish reason length); raise max_tokens: a tool call is incomplete", false, 1},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			s := &scripted{info: model.Info{ID: "m"}, responses: tt.responses}
			var warned []string
			m := model.WithTruncation(s, tt.mode, func(text string) { warned = append(warned, text) })
			var deltas strings.Builder
			got, err := model.Call(t.Context(), m, model.Request{Stream: stream, Messages: []chat.Message{chat.Text(chat.User, "count")}}, func(ev model.Event) { deltas.WriteString(ev.Text) })
			var text string
			if err != nil {
				text = "error: " + err.Error()
			} else {
				text = got.Message.Text()
				if stream && deltas.String() != text {
					t.Errorf("%s: the deltas are %q", tt.name, deltas.String())
				}
				if got.Usage.Input != 10*tt.calls || got.Usage.Output != 2*tt.calls {
					t.Errorf("%s: usage %+v", tt.name, got.Usage)
				}
			}
			if text != tt.want || len(s.requests) != tt.calls || len(warned) > 0 != tt.warned {
				t.Errorf("%s, stream %v:\n got %s\nwant %s\n%d calls, warnings %q", tt.name, stream, text, tt.want, len(s.requests), warned)
			}
		}
	}
}

// A continued request has the parts so far, and no schema, which holds for the whole answer.
func TestWithTruncation_Continued(t *testing.T) {
	s := &scripted{info: model.Info{ID: "m"}, responses: []model.Response{reply("{", "length", "length"), reply("}", "stop", "")}}
	req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "go")}, Schema: &model.Schema{Name: "x"}}
	got, err := model.Call(t.Context(), model.WithTruncation(s, "continue", nil), req, nil)
	if err != nil || got.Message.Text() != "{}" || got.Parts != 2 || got.Finish != "stop" {
		t.Fatalf("%+v, %v", got, err)
	}
	next := s.requests[1]
	if len(next.Messages) != 3 || next.Messages[1].Text() != "{" || next.Messages[2].Role != chat.User || next.Schema != nil || len(req.Messages) != 1 {
		t.Errorf("sent %+v", next)
	}
	failing := &scripted{info: model.Info{ID: "m"}, responses: []model.Response{reply("a", "length", "length")}, errs: []error{nil, &model.Error{Message: "down"}}}
	var e *model.Error
	if _, err := model.Call(t.Context(), model.WithTruncation(failing, "continue", nil), req, nil); !errors.As(err, &e) || e.Message != "down" {
		t.Error(err)
	}
}

func TestWithSchemaForm(t *testing.T) {
	info := model.Info{ID: "m", Endpoint: "http://a", Name: "n"}
	refused := &model.Error{Status: 422, Message: "('body', 'response_format', 'type'): Input should be 'text' or 'json_object'"}
	badSchema := &model.Error{Status: 400, Message: "Invalid schema for response_format 'x'"}
	other := &model.Error{Status: 400, Message: "prompt is too long"}
	both := []string{"schema", "json_object"}
	tests := []struct {
		name      string
		form      model.SchemaForm
		available []string
		errs      []error
		want      string // the forms of the requests
		later     string // those of the next call
		err       string
	}{
		{"accepted", "auto", both, nil, "schema", "schema", ""},
		{"learned", "", both, []error{refused}, "schema json_object", "json_object", ""},
		{"learned twice", "auto", both, []error{refused, refused}, "schema json_object prompt", "prompt", ""},
		{"this schema only", "auto", both, []error{badSchema}, "schema json_object", "schema", ""},
		{"another error", "auto", both, []error{other}, "schema", "schema", "prompt is too long"},
		{"an error that stays", "auto", both, []error{refused, refused, refused}, "schema json_object prompt", "schema", "response_format"},
		{"no JSON", "auto", both[:1], []error{refused}, "schema prompt", "prompt", ""},
		{"no forms", "auto", nil, nil, "prompt", "prompt", ""},
		{"fixed", "json_object", both, nil, "json_object", "json_object", ""},
		{"fixed is not weakened", "schema", both, []error{refused}, "schema", "schema", "response_format"},
		{"prompt", "prompt", both, nil, "prompt", "prompt", ""},
	}
	for _, tt := range tests {
		s, known := &scripted{info: info, responses: []model.Response{reply("{}", "stop", "")}, errs: tt.errs}, &model.SchemaForms{}
		req := model.Request{Schema: &model.Schema{Name: "x", JSON: []byte(`{}`)}}
		_, err := model.Call(t.Context(), model.WithSchemaForm(s, tt.form, tt.available, known), req, nil)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := forms(s.requests); got != tt.want {
			t.Errorf("%s: forms %s, want %s", tt.name, got, tt.want)
		}
		s.requests, s.errs = nil, nil
		if _, err := model.Call(t.Context(), model.WithSchemaForm(s, tt.form, tt.available, known), req, nil); err != nil {
			t.Error(tt.name, err)
		}
		if got := forms(s.requests); got != tt.later {
			t.Errorf("%s: the next call has the form %s, want %s", tt.name, got, tt.later)
		}
		if req.Schema.Form != "" {
			t.Error("the caller's request was changed")
		}
	}
}

func forms(requests []model.Request) string {
	var list []string
	for _, r := range requests {
		if r.Schema == nil {
			list = append(list, "prompt")
			continue
		}
		list = append(list, string(r.Schema.Form))
	}
	return strings.Join(list, " ")
}

// TestWithTruncation_Items checks that calls that continue an answer keep their items, and that a joined text reports what
// its beginning has lost.
func TestWithTruncation_Items(t *testing.T) {
	reasoning := func(text string) chat.Block {
		return chat.Block{Type: chat.ReasoningType, Text: text, Item: &chat.Item{Field: "reasoning"}}
	}
	part := func(finish string, blocks ...chat.Block) model.Response {
		return model.Response{Finish: finish, Message: chat.Message{Role: chat.Assistant, Origin: &chat.Origin{API: "chat"}, Blocks: blocks}}
	}
	plain := part("length", chat.Block{Type: "text", Text: "a"})
	first := part("length", reasoning("r1"), plain.Message.Blocks[0])
	call := chat.Block{Type: chat.CallType, Call: &chat.ToolCall{ID: "c", Name: "f"}}
	for name, tt := range map[string]struct {
		first, next      model.Response
		reasons, dropped int
	}{
		"calls":       {first, part("tool_calls", reasoning("r2"), call), 2, 0},
		"text":        {first, part("stop", reasoning("r2"), chat.Block{Type: "text", Text: "b"}), 1, 1},
		"signed text": {plain, part("stop", chat.Block{Type: "text", Text: "b", Item: &chat.Item{Field: "thoughtSignature"}}), 0, 1},
		"plain text":  {plain, part("stop", chat.Block{Type: "text", Text: "b"}), 0, 0},
	} {
		m := model.WithTruncation(&scripted{responses: []model.Response{tt.first, tt.next}}, model.TruncationContinue, nil)
		got, err := model.Call(t.Context(), m, model.Request{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, b := range got.Message.Blocks {
			if b.Type == chat.ReasoningType && b.Item != nil {
				n++
			}
		}
		if n != tt.reasons || len(got.Dropped) != tt.dropped || got.Message.Origin == nil {
			t.Errorf("%s: got %+v, dropped %q", name, got.Message, got.Dropped)
		}
	}
}
