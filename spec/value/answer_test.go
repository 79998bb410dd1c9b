package value_test

import (
	"testing"

	"github.com/qtype-dev/qtype/spec/value"
)

func TestAnswerText(t *testing.T) {
	const object = `{"name":"Ada"}`
	for text, want := range map[string]string{
		"":                             "",
		object:                         object,
		"\ufeff" + object + "\n":       object,
		"```json\n" + object + "\n```": object,
		"```" + object + "```":         object,
		"<think>\nA {\"name\":\"x\"}?\n</think>\n\n" + object: object,
		"The plan.</think>\n```\n" + object + "\n```":         object,
		"\ufeff<think></think>\ufeff" + object:                object,
		`{"html":"a</think>b"}`:                               `{"html":"a</think>b"}`,
		"Use <think>x</think> and\n" + object:                 "Use <think>x</think> and\n" + object,
		"```\na\n```\nor\n```\nb\n```":                        "```\na\n```\nor\n```\nb\n```",
		"<think>without an end":                               "<think>without an end",
	} {
		if got := value.AnswerText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
