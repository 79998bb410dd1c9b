package model_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContextWindow(t *testing.T) {
	tests := map[string]int{
		"gpt-5.2": 272_000, "gpt-5.4-mini-2026-03-17": 272_000, "openai/gpt-6-luna": 922_000, "GPT-6-SOL": 922_000, "anthropic/claude-opus-4-8": 1_000_000, "us.amazon.nova-lite-v1:0": 300_000,
		"gemini-3.8-flash": 1_048_576, "gpt-5.55": 0, "llama3.1": 0, "": 0, "g": 0,
	}
	for name, want := range tests {
		if got := model.Describe(&spec.Model{Provider: "openai", BaseURL: "https://gateway.example/v1", ModelID: name}).ContextWindow; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestMaxTokens(t *testing.T) {
	tests := []struct {
		params map[string]any
		want   int
	}{
		{nil, 0}, {map[string]any{"max_tokens": 5}, 5}, {map[string]any{"max_tokens": "5"}, 0}, {map[string]any{"max_completion_tokens": 7.0, "max_tokens": 5}, 7},
	}
	for _, tt := range tests {
		if got := model.MaxTokens(tt.params); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.params, got, tt.want)
		}
	}
}

// script is a model that runs one function for each call.
type script struct {
	calls int
	acts  []act
}

type act = func(ctx context.Context, yield func(model.Event, error) bool)

func acts(list ...act) []act { return list }

func (s *script) Info() model.Info { return model.Info{ID: "m"} }

func (s *script) Generate(ctx context.Context, _ model.Request) iter.Seq2[model.Event, error] {
	s.calls++
	return func(yield func(model.Event, error) bool) { s.acts[min(s.calls, len(s.acts))-1](ctx, yield) }
}

func TestWithRetry(t *testing.T) {
	fails := func(e *model.Error) act {
		return func(_ context.Context, yield func(model.Event, error) bool) { yield(model.Event{}, e) }
	}
	answers := func(_ context.Context, yield func(model.Event, error) bool) {
		m := chat.Text(chat.Assistant, "Hi")
		_ = yield(model.Event{Text: "Hi"}, nil) && yield(model.Event{Response: &model.Response{Message: m}}, nil)
	}
	stops := func(context.Context, func(model.Event, error) bool) {}
	passing := &model.Error{Model: "m", Status: 500, Message: "oh", Temporary: true}
	tests := map[string]struct {
		acts  []act
		want  string // the error; empty for an answer
		calls int
	}{
		"at once":          {acts: acts(answers), calls: 1},
		"third time":       {acts: acts(fails(passing), fails(passing), answers), calls: 3},
		"lasting":          {acts: acts(fails(&model.Error{Model: "m", Message: "no"})), want: "model m: no", calls: 1},
		"used up":          {acts: acts(fails(passing)), want: "model m: HTTP 500: oh, tried 3 times", calls: 3},
		"long retry-after": {acts: acts(fails(&model.Error{Model: "m", Message: "busy", Temporary: true, RetryAfter: 90 * time.Second})), want: "model m: busy, retry after 1m30s", calls: 1},
		"just stops":       {acts: acts(stops), want: "model m: the answer ended before it was complete, tried 3 times", calls: 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &script{acts: tt.acts}
			m := model.WithRetry(s, model.CallPolicy{MaxAttempts: 3, InitialDelay: time.Microsecond, MaxDelay: time.Millisecond})
			_, err := model.Call(t.Context(), m, model.Request{}, nil)
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if s.calls != tt.calls {
				t.Errorf("%d calls, want %d", s.calls, tt.calls)
			}
		})
	}
	if passing.Attempts != 0 {
		t.Error("the client's own error was changed")
	}
}

func TestError_RetryAfter(t *testing.T) {
	e := &model.Error{Message: "busy", RetryAfter: 24 * time.Hour}
	if got := e.Error(); got != "busy, retry after 24h" {
		t.Error(got)
	}
}

func TestError_Unwrap(t *testing.T) {
	below := errors.New("below")
	if !errors.Is(&model.Error{Message: "above", Err: below}, below) {
		t.Error("the cause is lost")
	}
}
