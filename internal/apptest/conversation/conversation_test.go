package conversation_test

import (
	"iter"
	"slices"
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
	}{{[]int64{8}, 1}, {[]int64{2, 5, 8}, 8}, {[]int64{1, 2, 3, 4, 5, 6, 7, 8}, 8}} {
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
