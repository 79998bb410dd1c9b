package chat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec/chat"
)

// answered is a message of a model with blocks of all kinds.
func answered() chat.Message {
	item := func(field string) *chat.Item { return &chat.Item{Field: field, JSON: `{"a":1}`} }
	return chat.Message{ID: "m", Role: chat.Assistant, Origin: &chat.Origin{API: "a"}, Blocks: []chat.Block{
		{Type: chat.ReasoningType, Text: "hm", Item: item("thinking")}, {Type: chat.CommentaryType, Text: "I look."},
		{Type: chat.CallType, Call: &chat.ToolCall{ID: "1", Name: "f"}, Item: item("signature")},
		{Type: chat.ItemType, Item: item("result")}, {Type: "text", Text: "Done."}}}
}

func TestMessage_Parts(t *testing.T) {
	m := answered()
	call := chat.Block{Type: chat.CallType, Call: &chat.ToolCall{ID: "1", Name: "f"}}
	text := func(kind, s string) chat.Block { return chat.Block{Type: kind, Text: s} }
	for name, c := range map[string]struct {
		got  chat.Message
		want []chat.Block
	}{
		"without items": {m.WithoutItems(), []chat.Block{text(chat.ReasoningType, "hm"), text(chat.CommentaryType, "I look."), call, text("text", "Done.")}},
		"without calls": {m.WithoutCalls(), []chat.Block{text(chat.ReasoningType, "hm"), text(chat.CommentaryType, "I look."), text("text", "Done.")}},
		"content":       {m.Content(), []chat.Block{text("text", "Done."), call}},
		"another text":  {m.WithText("New."), []chat.Block{text("text", "New."), call}},
	} {
		if d := cmp.Diff(chat.Message{ID: "m", Role: chat.Assistant, Blocks: c.want}, c.got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if d := cmp.Diff(answered(), m); d != "" {
		t.Errorf("the message itself was changed: %s", d)
	}
	if got := m.Redacted().Blocks[0].Item.JSON; got != "[item thinking, 7 bytes]" {
		t.Errorf("a log has %s", got)
	}
	if m.CheckGiven() == nil || m.Content().CheckGiven() != nil {
		t.Errorf("a caller may give %v, not %v", m.CheckGiven(), m.Content().CheckGiven())
	}
	if m.Text() != "Done." || !m.HasCalls() || len(m.Calls()) != 1 {
		t.Errorf("text %q, calls %v", m.Text(), m.Calls())
	}
	renamed := m.MapCalls(func(c chat.ToolCall) chat.ToolCall {
		c.ID = "2"
		return c
	})
	if renamed.Calls()[0].ID != "2" || renamed.Blocks[2].Item == nil || m.Calls()[0].ID != "1" {
		t.Errorf("got %v", renamed.Blocks)
	}
}

// TestMessage_WithoutCalls checks that only a message that loses calls loses its items.
func TestMessage_WithoutCalls(t *testing.T) {
	plain := chat.Message{Role: chat.Assistant, Origin: &chat.Origin{API: "responses"}, Blocks: []chat.Block{{Type: "text", Text: "a", Item: &chat.Item{Field: "message"}}}}
	if got := plain.WithoutCalls(); got.Origin == nil || got.Blocks[0].Item == nil {
		t.Errorf("got %+v", got)
	}
	if got := plain.With(chat.ToolCall{ID: "c"}).WithoutCalls(); got.HasCalls() || got.Origin != nil || got.Blocks[0].Item != nil {
		t.Errorf("got %+v", got)
	}
}
