package steps_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit/valuetest"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// TestAgent_OutputForms reads an answer of a custom type at the first attempt with any text
// around its JSON.
func TestAgent_OutputForms(t *testing.T) {
	const object = `{"name":"Ada","age":36}`
	for _, text := range []string{
		object, "\ufeff" + object, "```json\n" + object + "\n```", "<think>\nOr {\"name\":\"x\",\"age\":1}?\n</think>\n\n" + object,
		"Here is the record:\n" + object + "\nHope that {helps}!", "Not {\"name\":1}, but:\n```\n" + object + "\n```\n",
	} {
		calls := 0
		s := newLLM(t, func(int, request) reply { calls++; return textReply(text) })
		l := declare(t, []*spec.CustomType{valuetest.Custom(t, "Person", []string{"name: text", "age: int"})}, "say: text", "answer: Person")
		w := newTestEnv(t, s, l, memory.Config{})
		r := build(t, w.agent(l, nil, false), w.env)
		expect(t, text, drive(t, l, r, l.row(map[string]any{"say": "hi"})), `{"say":"hi","answer":`+object+`}`)
		if calls != 1 {
			t.Errorf("%q needed %d calls", text, calls)
		}
	}
}
