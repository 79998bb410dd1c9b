package wire_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// TestThinkSplitter splits each answer in all places: the result is the same.
func TestThinkSplitter(t *testing.T) {
	for answer, want := range map[string][2]string{
		"Hello":                                {"Hello", ""},
		"":                                     {"", ""},
		"<think>\nplan\n</think>\n\nHello!":    {"Hello!", "\nplan\n"},
		"\n <think></think>Hello":              {"Hello", ""},
		"<think>a </thin b</think> x </think>": {"x </think>", "a </thin b"},
		"The tag <think>is</think> text":       {"The tag <think>is</think> text", ""},
		"<thinking>mine</thinking>":            {"<thinking>mine</thinking>", ""},
		" <thi":                                {" <thi", ""},
		"<think>cut off </th":                  {"", "cut off </th"},
		"<think>é</think>ü":                    {"ü", "é"},
	} {
		for first := 0; first <= len(answer); first++ {
			for second := first; second <= len(answer); second++ {
				var s wire.ThinkSplitter
				var text, reasoning string
				for _, part := range []string{answer[:first], answer[first:second], answer[second:]} {
					more, thought := s.Add(part)
					text, reasoning = text+more, reasoning+thought
				}
				more, thought := s.End()
				if text, reasoning = text+more, reasoning+thought; text != want[0] || reasoning != want[1] {
					t.Fatalf("%q split at %d and %d: text %q, reasoning %q", answer, first, second, text, reasoning)
				}
			}
		}
	}
}
