package steps_test

import (
	"testing"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

func BenchmarkPromptTemplate(b *testing.B) {
	l := declare(b, nil, "name: text", "n: int", "out: text")
	r := build(b, &spec.PromptTemplate{StepBase: l.base("t", []string{"name", "n"}, []string{"out"}),
		Template: "Answer {name}, customer {n:05d}, as {{\"label\": ...}}."}, &steps.Env{Slots: l}).(steps.Step)
	row := l.row(map[string]any{"name": "Ann", "n": int64(42)})
	drop := func(*steps.Row) error { return nil }
	for b.Loop() {
		if err := r.Process(b.Context(), row, drop); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInference measures one turn of a conversation over loopback HTTP.
func BenchmarkInference(b *testing.B) {
	s := newLLM(b, func(int, request) reply { return textReply("fine") })
	l := declare(b, nil, "say: text", "out: text")
	w := newTestEnv(b, s, l, memory.Config{Limits: memory.Limits{"token_limit": 1000, "token_flush_size": 200}})
	r := build(b, w.inference(l, []string{"say"}, "out", "Be brief."), w.env).(steps.Step)
	drop := func(*steps.Row) error { return nil }
	for b.Loop() {
		if err := r.Process(b.Context(), l.row(map[string]any{"say": "hello there"}), drop); err != nil {
			b.Fatal(err)
		}
	}
}
