package steps_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// listen records the events of steps, one line each.
type listen struct {
	mu    sync.Mutex
	lines []string
}

func (l *listen) hear(ev steps.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf("%s %s", ev.Step, ev.Kind)
	switch ev.Kind {
	case steps.EventText, steps.EventReasoning:
		line += fmt.Sprintf(" %q", ev.Text)
	case steps.EventUsage:
		line += fmt.Sprintf(" %d in, %d out", ev.Input, ev.Output)
	default:
		line += fmt.Sprintf(" %s %s %q", ev.CallID, ev.Tool, ev.Text)
	}
	if ev.Err != nil {
		line += " failed: " + ev.Err.Error()
	}
	l.lines = append(l.lines, line)
}

// The third turn sends the system message, the earlier turns and the new message, in
// order: with and without streaming, for any type of the output.
func TestLLMInference_SendsConversation(t *testing.T) {
	for _, output := range []string{"answer", "text"} {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, streams %v", output, streams), func(t *testing.T) {
				s := newLLM(t, func(n int, _ request) reply { return textReply(fmt.Sprintf("Reply %d", n), "\n", " ", "end") })
				l := declare(t, nil, "say: text", "answer: ChatMessage", "text: text")
				w := newTestEnv(t, s, l, memory.Config{})
				r := build(t, w.inference(l, []string{"say"}, output, "You answer for a bookshop."), w.env)
				ctx, heard := t.Context(), &listen{}
				if streams {
					ctx = steps.WithEvents(ctx, heard.hear)
				}
				var rows []*steps.Row
				for _, text := range []string{"one", "two", "three"} {
					rows = append(rows, driveCtx(ctx, t, r, l.row(map[string]any{"say": text}))...)
				}
				expect(t, "request", lines(s.last().Messages),
					"system: You answer for a bookshop.", "user: one", "assistant: Reply 1\n end",
					"user: two", "assistant: Reply 2\n end", "user: three")
				if s.last().Stream != streams {
					t.Error("stream is", s.last().Stream)
				}
				for i, row := range rows {
					want := fmt.Sprintf("Reply %d\n end", i+1)
					got := row.Values[l.Slot(l.ref(output).To)]
					if value.Text(got) != want {
						t.Errorf("%v: got %v", row.Err, got)
					}
				}
				if streams {
					expect(t, "events", heard.lines[:6], `draft reasoning "thinking hard"`, `draft text "Reply 1"`, `draft text "\n"`, `draft text " "`, `draft text "end"`, "draft usage 11 in, 7 out")
				}
			})
		}
	}
}

// Every input becomes one message, in order; a picture and the values around it are one.
func TestLLMInference_InputsBecomeMessages(t *testing.T) {
	s := newLLM(t, func(int, request) reply { return textReply("ok") })
	l := declare(t, nil, "m: ChatMessage", "n: int", "pic: image", "maybe: text?", "on: date", "list: list[text]", "all: list[ChatMessage]", "film: video", "out: text")
	w := newTestEnv(t, s, l, memory.Config{})
	step := w.inference(l, []string{"m", "n", "pic", "maybe", "on", "list", "all"}, "out", "Be brief.")
	step.Memory = spec.Ref[*spec.Memory]{}
	r := build(t, step, w.env)
	full := map[string]any{"m": chat.Text(chat.Assistant, "I text"), "n": int64(5), "pic": []byte("png"), "maybe": nil,
		"on": value.Date{Year: 2024, Month: 5, Day: 6}, "list": []any{"a", "b"}, "all": []any{chat.Text(chat.User, "x"), chat.Text(chat.Assistant, "y")}}
	if row := driveRows(t, r, l.row(full))[0]; row.Err != nil {
		t.Fatal(row.Err)
	}
	got := lines(s.last().Messages)
	expect(t, "request", got, "system: Be brief.", "assistant: I text",
		`user: [{"text":"5","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"},{"text":"2024-05-06","type":"text"},{"text":"[\"a\",\"b\"]","type":"text"}]`,
		"user: x", "assistant: y")
	delete(full, "pic")
	step.Inputs = l.refs("n", "on", "all")
	driveRows(t, build(t, step, w.env), l.row(full))
	expect(t, "without a picture", lines(s.last().Messages), "system: Be brief.", "user: 5", "user: 2024-05-06", "user: x", "assistant: y")
	own := map[string]any{"m": chat.Text(chat.System, "Mine.")}
	step.Inputs = l.refs("m")
	driveRows(t, build(t, step, w.env), l.row(own))
	expect(t, "a system message in the row", lines(s.last().Messages), "system: Mine.")

	before := len(s.requests())
	fails := func(input string, v any, want string) {
		t.Helper()
		step.Inputs = l.refs(input)
		expect(t, input, drive(t, l, build(t, step, w.env), l.row(map[string]any{input: v})), "error: "+want)
	}
	fails("film", []byte("mp4"), "variable film: models do not accept video")
	fails("n", nil, "variable n: it is null")
	fails("m", any(value.Unset), "variable m is not set")
	fails("maybe", nil, "all inputs are empty; nothing to send")
	if len(s.requests()) != before {
		t.Error("the model was asked all the same")
	}
	if _, err := steps.Build(w.inference(l, nil, "out", ""), w.env); err == nil || err.Error() != "needs at least 1 input to send to the model" {
		t.Error(err)
	}
}

// Two steps share a memory: the answer of the first, an input of the second, is added once.
func TestLLMInference_SharedMemoryAddsAnswerOnce(t *testing.T) {
	s := newLLM(t, func(n int, _ request) reply { return textReply(fmt.Sprintf("answer %d", n)) })
	l := declare(t, nil, "say: ChatMessage", "draft: ChatMessage", "ask: text", "label: text")
	w := newTestEnv(t, s, l, memory.Config{})
	first := build(t, w.inference(l, []string{"say"}, "draft", "Draft."), w.env)
	second := build(t, w.inference(l, []string{"say", "draft", "ask"}, "label", "Label."), w.env)
	row := l.row(map[string]any{"say": chat.Text(chat.User, "hello"), "ask": "one word"})
	rows := driveRows(t, second, driveRows(t, first, row)...)
	if rows[0].Err != nil {
		t.Fatal(rows[0].Err)
	}
	expect(t, "request", lines(s.last().Messages), "system: Label.", "user: hello", "assistant: answer 1", "user: one word")
	expect(t, "history", w.history(t, "s"), "user: hello [in window]", "assistant: answer 1 [in window]", "user: one word [in window]", "assistant: answer 2 [in window]")
}

func TestLLMInference_FailureKeepsWindow(t *testing.T) {
	s := newLLM(t, func(n int, _ request) reply {
		if n == 2 {
			return reply{status: 500}
		}
		return textReply("fine")
	})
	l := declare(t, nil, "say: text", "out: text")
	w := newTestEnv(t, s, l, memory.Config{})
	r := build(t, w.inference(l, []string{"say"}, "out", ""), w.env)
	got := drive(t, l, r, l.row(map[string]any{"say": "one"}), l.row(map[string]any{"say": "two"}), l.row(map[string]any{"say": "two"}))
	if got[0] != `{"say":"one","out":"fine"}` || got[2] != `{"say":"two","out":"fine"}` || !strings.Contains(got[1], "HTTP 500") || !strings.Contains(got[1], "out of order") {
		t.Error(got)
	}
	expect(t, "request", lines(s.last().Messages), "user: one", "assistant: fine", "user: two")
	expect(t, "history", w.history(t, "s"), "user: one [in window]", "assistant: fine [in window]", "user: two [failed]", "user: two [in window]", "assistant: fine [in window]")
}

func TestLLMInference_CanceledTurnIsRecorded(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	asked := make(chan struct{}, 1)
	s := newLLM(t, func(n int, _ request) reply {
		if n == 1 {
			asked <- struct{}{}
			return reply{hold: hold}
		}
		return textReply("fine")
	})
	l := declare(t, nil, "say: text", "out: text")
	w := newTestEnv(t, s, l, memory.Config{})
	r := build(t, w.inference(l, []string{"say"}, "out", ""), w.env)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	err := r.(steps.Step).Process(ctx, l.row(map[string]any{"say": "one"}), func(*steps.Row) error { t.Error("a row came out"); return nil })
	if err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Error(err)
	}
	expect(t, "the next turn", drive(t, l, r, l.row(map[string]any{"say": "two"})), `{"say":"two","out":"fine"}`)
	expect(t, "history", w.history(t, "s"), "user: one [failed]", "user: two [in window]", "assistant: fine [in window]")
}

// interruptedStore ends the first change of a memory when its context ends, with an error that
// does not wrap the reason, as the drivers of databases do. The change is made if applies is set.
type interruptedStore struct {
	store.Store
	begun   chan struct{}
	once    sync.Once
	applies bool
}

func (s *interruptedStore) Apply(ctx context.Context, key store.Key, c store.Change) (err error) {
	first := false
	s.once.Do(func() { first = true })
	if !first {
		return s.Store.Apply(ctx, key, c)
	}
	close(s.begun)
	<-ctx.Done()
	if s.applies {
		err = s.Store.Apply(context.WithoutCancel(ctx), key, c)
	}
	return errors.Join(err, errors.New("connection closed"))
}

// TestLLMInference_SuspendedCommit: a turn that will be repeated is interrupted while it is
// stored. The repetition leaves it in the memory once, and nothing is recorded as failed.
func TestLLMInference_SuspendedCommit(t *testing.T) {
	for _, applies := range []bool{false, true} {
		s := newLLM(t, func(int, request) reply { return textReply("fine") })
		l := declare(t, nil, "say: text", "out: text")
		w := newTestEnv(t, s, l, memory.Config{})
		interrupted := &interruptedStore{Store: memory.NewInProcess(), begun: make(chan struct{}), applies: applies}
		counter, err := tokenizer.For("o200k_base")
		testkit.Must(t, err)
		w.shared, err = memory.New(memory.Config{ID: w.memory.ID, Counter: counter}, interrupted)
		testkit.Must(t, err)
		r := build(t, w.inference(l, []string{"say"}, "out", ""), w.env)
		ctx, suspend := context.WithCancelCause(steps.WithRunID(t.Context(), "run"))
		go func() { <-interrupted.begun; suspend(memory.ErrSuspended) }()
		got := driveCtx(ctx, t, r, l.row(map[string]any{"say": "one"}))
		if len(got) != 1 || !errors.Is(got[0].Err, memory.ErrSuspended) {
			t.Errorf("applies %t: %s", applies, show(l, got[0]))
		}
		again := driveCtx(steps.WithRunID(t.Context(), "run"), t, r, l.row(map[string]any{"say": "one"}))
		expect(t, "the repeated turn", []string{show(l, again[0])}, `{"say":"one","out":"fine"}`)
		expect(t, "history", w.history(t, "s"), "user: one [in window]", "assistant: fine [in window]")
	}
}

// overtakenStore calls overtake before its first change.
type overtakenStore struct {
	store.Store
	once     sync.Once
	overtake func()
}

func (s *overtakenStore) Apply(ctx context.Context, key store.Key, c store.Change) error {
	s.once.Do(s.overtake)
	return s.Store.Apply(ctx, key, c)
}

// TestLLMInference_Overtaken: another attempt commits a turn while this one waits for the model. Both report the tokens and the
// flushes, because one of the reports is lost with its attempt.
func TestLLMInference_Overtaken(t *testing.T) {
	s := newLLM(t, func(int, request) reply { return textReply("fine") })
	l := declare(t, nil, "say: text", "out: text")
	cfg := memory.Config{Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 2}}
	w := newTestEnv(t, s, l, cfg)
	inner := memory.NewInProcess()
	overtaken := &overtakenStore{Store: inner}
	var runners []steps.Runner
	cfg.ID = w.memory.ID
	var err error
	if cfg.Counter, err = tokenizer.For("o200k_base"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []store.Store{inner, overtaken} {
		w.shared, err = memory.New(cfg, at)
		testkit.Must(t, err)
		runners = append(runners, build(t, w.inference(l, []string{"say"}, "out", ""), w.env))
	}
	driveCtx(t.Context(), t, runners[0], l.row(map[string]any{"say": "one"}))
	turn := func(runner int) (used string) {
		ctx := steps.WithEvents(steps.WithRunID(t.Context(), "run"), func(ev steps.Event) {
			used += fmt.Sprintf("%s %d %d %d ", ev.Kind, ev.Input, ev.Output, ev.Flushes)
		}, steps.EventUsage, steps.EventTurn)
		driveCtx(ctx, t, runners[runner], l.row(map[string]any{"say": "two"}))
		return used
	}
	first := ""
	overtaken.overtake = func() { first = turn(0) }
	if second := turn(1); second != first || !strings.HasSuffix(first, " 1 ") {
		t.Errorf("reported %q, want %q", second, first)
	}
	expect(t, "history", w.history(t, "s")[2:], "user: two [in window]", "assistant: fine [in window]")
}

func TestLLMInference_EmptyAnswers(t *testing.T) {
	tests := []struct {
		answer reply
		want   string
	}{
		{reply{finish: "content_filter"}, "error: model m: the provider's content filter withheld the answer or a part of it (finish reason content_filter)"},
		{reply{finish: "length"}, "error: model m: the answer was cut off at the token limit (finish reason length); raise max_tokens: the model wrote no text before it"},
		{callsFor([3]string{"c1", "find", "{}"}), "error: the model called a tool, find, instead of answering; the step offers none"},
		{reply{}, "error: the model gave an empty answer"},
		{reply{others: map[string]any{"reasoning_content": "I only think."}}, "error: the model gave an empty answer"},
		{reply{others: map[string]any{"annotations": []any{map[string]any{"type": "url_citation", "url_citation": map[string]any{"url": "https://a.example"}}}}}, "error: the model gave an empty answer"},
		{reply{deltas: []string{"half"}, finish: "length"}, "error: model m: the answer was cut off at the token limit (finish reason length); raise max_tokens, or set on_truncation to warn or continue"},
	}
	for _, tt := range tests {
		s := newLLM(t, func(int, request) reply { return tt.answer })
		l := declare(t, nil, "say: text", "out: text")
		w := newTestEnv(t, s, l, memory.Config{})
		expect(t, tt.want, drive(t, l, build(t, w.inference(l, []string{"say"}, "out", ""), w.env), l.row(map[string]any{"say": "hi"})), tt.want)
		if strings.HasPrefix(tt.want, "error") {
			expect(t, "history", w.history(t, "s"), "user: hi [failed]")
		}
	}
}
