package conversation_test

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/apptest/conversation"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestMinimize removes the turns that a result does not need, in few tries.
func TestMinimize(t *testing.T) {
	var turns []*conversation.Turn
	for i := range 8 {
		turns = append(turns, &conversation.Turn{Number: int64(i + 1)})
	}
	for _, c := range []struct {
		needed []int64
		tries  int
	}{{[]int64{8}, 1}, {[]int64{2, 5, 8}, 12}, {[]int64{1, 2, 3, 4, 5, 6, 7, 8}, 11}} {
		tries := 0
		kept := conversation.Minimize(turns, func(some []*conversation.Turn) bool {
			tries++
			return !slices.ContainsFunc(c.needed, func(n int64) bool {
				return !slices.ContainsFunc(some, func(t *conversation.Turn) bool { return t.Number == n })
			})
		})
		var got []int64
		for _, k := range kept {
			got = append(got, k.Number)
		}
		if !slices.Equal(got, c.needed) || tries != c.tries {
			t.Errorf("got %v in %d tries, want %v in %d", got, tries, c.needed, c.tries)
		}
	}
}

// TestRead checks which messages are part of a test.
func TestRead(t *testing.T) {
	entry := func(turn int64, status store.Status, m chat.Message) store.Entry {
		return store.Entry{Turn: turn, Status: status, Message: m}
	}
	call := chat.Text(chat.Assistant, "secret").With(chat.ToolCall{ID: "1", Name: "find", Arguments: `{"key":"secret"}`})
	result := chat.Text(chat.Tool, "secret")
	result.ToolCallID = "1"
	image := chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "image"}}}
	history := func(entries ...store.Entry) iter.Seq2[store.Entry, error] {
		return func(yield func(store.Entry, error) bool) {
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	redact := func(text string) string {
		if text == "secret" {
			return "***"
		}
		return text
	}
	all := []store.Entry{
		entry(1, store.Flushed, chat.Text(chat.System, "Be kind.")), entry(1, store.Flushed, chat.Text(chat.User, "secret")), entry(1, store.Flushed, call),
		entry(1, store.Flushed, result), entry(1, store.Flushed, chat.Text(chat.Assistant, "done")),
		entry(2, store.Failed, chat.Text(chat.User, "failed")), entry(3, store.InWindow, chat.Text(chat.User, "last")), entry(4, store.InWindow, image),
	}
	turns, err := conversation.Read(history(all...), 3, redact)
	if err != nil || len(turns) != 2 || turns[0].Input != "***" || len(turns[0].Rounds) != 2 || turns[0].Rounds[0].Results["1"] != "***" || turns[1].Input != "last" || conversation.Calls(turns) != 3 {
		t.Fatalf("%+v, %v", turns, err)
	}
	for until, want := range map[int64]string{0: "turn 4 has a part of type image: only questions of text can be inputs of a test", 9: "turn 4 has a part of type image: only questions of text can be inputs of a test"} {
		if _, err := conversation.Read(history(all...), until, redact); err == nil || err.Error() != want {
			t.Errorf("until %d: %v", until, err)
		}
	}
	if turns, err := conversation.Read(history(all...), 2, redact); err != nil || len(turns) != 2 || !turns[1].Failed || turns[0].Failed {
		t.Errorf("a turn that failed: %+v, %v", turns, err)
	}
	if _, err := conversation.Read(history(all[:2]...), 5, redact); err == nil || err.Error() != "the conversation has no turn 5: the last one before is 1" {
		t.Error(err)
	}
	if _, err := conversation.Read(history(), 0, redact); err == nil {
		t.Error("a conversation without turns is read")
	}
}

// TestMinimizeCalls removes the calls that a result does not need, one by one where they depend on each other.
func TestMinimizeCalls(t *testing.T) {
	calls := func(ids ...string) *conversation.Round {
		r := &conversation.Round{}
		for _, id := range ids {
			r.Calls = append(r.Calls, chat.ToolCall{ID: id})
		}
		return r
	}
	turns := []*conversation.Turn{
		{Number: 1, Rounds: []*conversation.Round{calls("a", "b"), calls("c"), {Text: "first"}}},
		{Number: 2, Rounds: []*conversation.Round{calls("d"), calls("e", "f"), {Text: "second"}}},
	}
	shown := func(turns []*conversation.Turn) (text string) {
		for _, t := range turns {
			for _, r := range t.Rounds {
				text += "("
				for _, c := range r.Calls {
					text += c.ID
				}
				text += r.Text + ")"
			}
		}
		return text
	}
	for needed, want := range map[string]string{"": "(first)(second)", "be": "(b)(first)(e)(second)", "df": "(first)(d)(f)(second)", "abcdef": "(ab)(c)(first)(d)(ef)(second)"} {
		kept := conversation.MinimizeCalls(turns, func(some []*conversation.Turn) bool {
			ids := ""
			for _, t := range some {
				for _, r := range t.Rounds {
					for _, c := range r.Calls {
						ids += c.ID
					}
				}
			}
			return !strings.ContainsFunc(needed, func(c rune) bool { return !strings.ContainsRune(ids, c) })
		})
		if got := shown(kept); got != want {
			t.Errorf("%q: got %s, want %s", needed, got, want)
		}
	}
	if shown(turns) != "(ab)(c)(first)(d)(ef)(second)" {
		t.Error("the turns were changed")
	}
}

// TestTyped replaces what people type, and nothing that only looks like it.
func TestTyped(t *testing.T) {
	typed := &conversation.Typed{}
	for text, want := range map[string]string{
		"My key is sk-proj-abcdefghijklmnopqrstuvwx.":   "My key is ***",
		`{"card":"4111 1111 1111 1111"}`:                `{"card":"***"}`,
		"4111-1111-1111-1111, not 4111111111111112":     "***, not 4111111111111112",
		"ISBN 9780143127741, order 8812":                "ISBN 9780143127741, order 8812",
		"Write to ada@shop.test or bob@example.com":     "Write to person1@example.com or bob@example.com",
		"ADA@shop.test again":                           "person1@example.com again",
		"a@b, and user@host":                            "a@b, and user@host",
		"550e8400-e29b-41d4-a716-446655440000 is an id": "550e8400-e29b-41d4-a716-446655440000 is an id",
	} {
		if got := typed.Redact(text); got != want && got != want+"." {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := typed.Summary(); got != "1 key, 1 card number, 1 e-mail address" {
		t.Error(got)
	}
	if got := (&conversation.Typed{}).Summary(); got != "" {
		t.Error(got)
	}
}
