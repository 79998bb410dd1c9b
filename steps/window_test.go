package steps_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

func drawWords(t *rapid.T, what string) string {
	n := rapid.IntRange(1, 40).Draw(t, what)
	words := []string{"parcel", "refund", "é", "where", "12345", "book", "日本", "!"}
	var b strings.Builder
	for i := range n {
		b.WriteString(words[(i*7+n)%len(words)])
		b.WriteByte(' ')
	}
	return fmt.Sprintf("%d %s", n, b.String())
}

// With a small token_limit, the window that the server receives never has more chat tokens
// than the chat share, begins with a user's message after the system message, is the end of
// the conversation without gaps, and loses at least token_flush_size tokens at a time. Only
// the newest round may violate the first and the last condition.
func TestLLMInference_WindowWithinLimits(t *testing.T) {
	answers := make(chan string, 1)
	s := newLLM(t, func(int, request) reply { return textReply(<-answers) })
	counter, err := tokenizer.For("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	count := func(m wireMessage) int {
		return memory.Tokens(counter, chat.Message{Role: chat.Role(m.Role), Blocks: []chat.Block{{Type: "text", Text: m.Content.(string)}}})
	}
	session := 0
	flushes := 0
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(40, 600).Draw(rt, "token_limit")
		ratio := rapid.Float64Range(0.3, 1).Draw(rt, "ratio")
		flush := rapid.IntRange(1, 300).Draw(rt, "flush")
		limitShare := int(float64(limit) * ratio)
		l := declare(t, nil, "a: text", "b: text?", "out: text")
		w := newTestEnv(t, s, l, memory.Config{Limits: memory.Limits{"token_limit": float64(limit), "chat_history_token_ratio": float64(ratio), "token_flush_size": float64(flush)}})
		r := build(t, w.inference(l, []string{"a", "b"}, "out", "You answer for a bookshop."), w.env)
		session++
		var sent []wireMessage // the conversation so far
		first := 0             // index of the first message of the conversation in the window
		newest := 0            // index of the newest round when the last answer was committed
		for range rapid.IntRange(1, 25).Draw(rt, "turns") {
			own := len(sent)
			values := map[string]any{"a": drawWords(rt, "a")}
			sent = append(sent, wireMessage{Role: "user", Content: values["a"]})
			if rapid.Bool().Draw(rt, "two inputs") {
				values["b"] = drawWords(rt, "b")
				sent = append(sent, wireMessage{Role: "user", Content: values["b"]})
			}
			answer := drawWords(rt, "answer")
			answers <- answer
			row := l.row(values)
			row.Session = fmt.Sprint("session ", session)
			if out := driveRows(t, r, row); out[0].Err != nil {
				rt.Fatal(out[0].Err)
			}
			got := lines(s.last().Messages)
			if got[0] != "system: You answer for a bookshop." {
				rt.Fatalf("the request begins with %s", got[0])
			}
			window := s.last().Messages[1:]
			start := len(sent) - len(window)
			if start < first || start > own {
				rt.Fatalf("the window begins at message %d, it was %d, and the turn's own begin at %d", start, first, own)
			}
			tokens := 0
			for i, m := range window {
				if m.String() != sent[start+i].String() {
					rt.Fatalf("message %d: got %s, want %s", i, m, sent[start+i])
				}
				tokens += count(m)
			}
			if window[0].Role != "user" {
				rt.Fatalf("the window begins with %s", window[0])
			}
			if tokens > limitShare && start != own {
				rt.Fatalf("%d tokens, the chat share is %d", tokens, limitShare)
			}
			dropped := 0
			for _, m := range sent[first:start] {
				dropped += count(m)
			}
			if start > first {
				flushes++
			}
			if start > first && dropped < min(flush, limitShare) && start != own && start != newest {
				rt.Fatalf("%d tokens left, at least %d leave at a time", dropped, flush)
			}
			first, newest = start, own
			sent = append(sent, wireMessage{Role: "assistant", Content: answer})
		}
	})
	if flushes < 50 {
		t.Errorf("only %d flushes were seen: the test shows little", flushes)
	}
}

// An invoked flow gets its bound inputs and returns its bound outputs only. The error of a
// failure inside of it names the inner step.
func TestInvokeFlow_PassesBoundValuesOnly(t *testing.T) {
	inner := declare(t, nil, "question: text", "hint: text?", "answer: text", "secret: text")
	flow := &spec.Flow{ID: "inner", Inputs: inner.refs("question", "hint"), Outputs: inner.refs("secret", "answer")}
	l := declare(t, nil, "q: text", "other: text", "got: text")
	var calls []steps.FlowCall
	env := &steps.Env{Slots: l, Flow: func(_ context.Context, c steps.FlowCall, emit steps.FlowEmit) error {
		calls = append(calls, c)
		if err := emit([]any{"s", "first"}, nil); err != nil {
			return err
		}
		return emit(nil, &steps.Error{Step: "deep", Err: errors.New("broken")})
	}}
	s := &spec.InvokeFlow{StepBase: spec.StepBase{ID: "call"}, Flow: spec.Ref[*spec.Flow]{To: flow},
		InputBindings: spec.Bindings{{Name: "question", Var: l.ref("q")}}, OutputBindings: spec.Bindings{{Name: "answer", Var: l.ref("got")}}}
	rows := driveRows(t, build(t, s, env), l.row(map[string]any{"q": "why", "other": "kept"}))
	expect(t, "rows", []string{show(l, rows[0]), rows[1].Err.Error()}, `{"q":"why","other":"kept","got":"first"}`, "step call > deep: broken")
	if len(calls) != 1 || calls[0].Inputs[0] != "why" || fmt.Sprint(calls[0].Inputs[1]) != "unset" || calls[0].Session != "s" {
		t.Errorf("%+v", calls)
	}
}
