package chat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
)

// parse makes messages of a text such as "u a12 1 2 s": a user message, an assistant with the
// calls 1 and 2, their results, and a system message.
func parse(text string) []chat.Message {
	roles := map[byte]chat.Role{'u': chat.User, 'a': chat.Assistant, 's': chat.System}
	var msgs []chat.Message
	for _, word := range strings.Fields(text) {
		m := chat.Message{Role: chat.Tool, ToolCallID: word, Name: "f" + word}
		if role, ok := roles[word[0]]; ok {
			m = chat.Text(role, word)
			for _, id := range word[1:] {
				m = m.With(chat.ToolCall{ID: string(id), Name: "f" + string(id)})
			}
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// shape is the reverse of parse; a result that was added has an exclamation mark.
func shape(msgs []chat.Message) string {
	var words []string
	for _, m := range msgs {
		word := m.Text()
		switch {
		case word == chat.MissingResult:
			word = m.ToolCallID + "!"
		case m.Role == chat.Tool:
			word = m.ToolCallID
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestBalance(t *testing.T) {
	for in, want := range map[string]string{
		"u a u":         "u a u 0",
		"u a12 1 2 a":   "u a12 1 2 a 0",
		"u a12 2 1 a":   "u a12 2 1 a 0",
		"u a12 1 u 2 a": "u a12 1 2! u a 2",
		"1 u a":         "u a 1",
		"u a1 u":        "u a1 1! u 1",
		"u a1":          "u a1 1! 1",
		"u a1 1 1 a":    "u a1 1 a 1",
		"u a1 s 1 u":    "u a1 1 s u 1",
		"u a1 s u":      "u a1 1! s u 2",
		"s u a1 a2 2":   "s u a1 1! a2 2 1",
		"":              " 0",
	} {
		out, repairs := chat.Balance(parse(in))
		if got := fmt.Sprint(shape(out), " ", repairs); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	byName := []chat.Message{chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "1", Name: "f"}), {Role: chat.Function, Name: "f"}}
	if out, repairs := chat.Balance(byName); repairs != 0 || len(out) != 2 {
		t.Errorf("a result with a name only: %d repairs, %v", repairs, out)
	}
}

// TestBalance_Random: the result has each call with its results and no other result, keeps
// all other messages in order, and balancing it again changes nothing.
func TestBalance_Random(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"u", "a", "s", "a1", "a12", "a3", "1", "2", "3"}), 0, 20).Draw(t, "messages")
		in := parse(strings.Join(words, " "))
		before := shape(in)
		out, repairs := chat.Balance(in)
		if shape(in) != before {
			t.Fatalf("the messages were changed to %s", shape(in))
		}
		var open []string
		for i, m := range out {
			if m.Role == chat.Tool {
				at := slices.Index(open, m.ToolCallID)
				if at < 0 {
					t.Fatalf("message %d of %q is a result without its call", i, shape(out))
				}
				open = slices.Delete(open, at, at+1)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("message %d of %q follows calls without results", i, shape(out))
			}
			for _, c := range m.Calls() {
				open = append(open, c.ID)
			}
		}
		if len(open) > 0 {
			t.Fatalf("%q ends with calls without results", shape(out))
		}
		if again, more := chat.Balance(out); more != 0 || shape(again) != shape(out) {
			t.Fatalf("%q is changed again to %q", shape(out), shape(again))
		}
		others := func(msgs []chat.Message) (all []string) {
			for _, m := range msgs {
				if m.Role == chat.User || m.Role == chat.Assistant {
					all = append(all, m.Text())
				}
			}
			return all
		}
		if !slices.Equal(others(in), others(out)) || repairs == 0 && shape(out) != before {
			t.Fatalf("%q became %q with %d repairs", before, shape(out), repairs)
		}
	})
}
