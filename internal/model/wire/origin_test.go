package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestForOrigin: items are sent to where they come from only, and nothing of other models but what
// they said and called.
func TestForOrigin(t *testing.T) {
	here, other := chat.Origin{API: "messages", Server: "s", Model: "m"}, chat.Origin{API: "messages", Server: "s", Model: "m-2"}
	item := &chat.Item{Field: "thinking", JSON: "{}"}
	answer := chat.Message{ID: "1", Role: chat.Assistant, Origin: &here, Blocks: []chat.Block{
		{Type: chat.ReasoningType, Text: "hm", Item: item}, {Type: chat.ReasoningType, Text: "shown only"},
		{Type: chat.CommentaryType, Text: "I look.", Item: item}, {Type: chat.CommentaryType, Text: "Now."},
		{Type: chat.ItemType, Item: item}, chat.CallBlock(chat.ToolCall{ID: "c"})}}
	messages := []chat.Message{chat.Text(chat.User, "q"), answer}
	got := wire.ForOrigin(messages, &here)[1].Blocks
	want := []chat.Block{answer.Blocks[0], answer.Blocks[2], {Type: "text", Text: "Now."}, answer.Blocks[4], answer.Blocks[5]}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("to its origin: %s", d)
	}
	got = wire.ForOrigin(messages, &other)[1].Blocks
	want = []chat.Block{{Type: "text", Text: "I look."}, {Type: "text", Text: "Now."}, answer.Blocks[5]}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("to another model: %s", d)
	}
	unknown := answer
	unknown.Origin = nil
	if d := cmp.Diff(want, wire.ForOrigin([]chat.Message{unknown}, &here)[0].Blocks); d != "" {
		t.Errorf("items without an origin: %s", d)
	}
	if len(messages[1].Blocks) != 6 {
		t.Error("the given messages were changed")
	}
	plain := []chat.Message{chat.Text(chat.User, "q"), chat.Text(chat.Assistant, "a")}
	if got := wire.ForOrigin(plain, &here); &got[0] != &plain[0] {
		t.Error("messages without items were copied")
	}
	if got := wire.ForOrigin(nil, &here); got != nil {
		t.Error(got)
	}
	if at := wire.TurnStart(append(plain, chat.Text(chat.User, "r"), answer)); at != 3 {
		t.Errorf("the turn begins at %d", at)
	}
}

// TestForOrigin_Approvals: an approval of a provider's call is for this provider only.
func TestForOrigin_Approvals(t *testing.T) {
	here, other := chat.Origin{API: "responses", Server: "s", Model: "m"}, chat.Origin{API: "messages", Server: "s", Model: "m"}
	asked := chat.CallBlock(chat.ToolCall{ID: "a", Name: "docs", Arguments: "{}"})
	asked.Item = &chat.Item{Field: model.ApprovalRequest, JSON: "{}"}
	listed, called := chat.Block{Type: chat.ItemType, Item: &chat.Item{Field: "mcp_list_tools", JSON: "{}"}}, chat.CallBlock(chat.ToolCall{ID: "c"})
	result := func(id string) chat.Message {
		return chat.Message{Role: chat.Tool, ToolCallID: id, Blocks: []chat.Block{{Type: "text", Text: model.Approved}}}
	}
	question := chat.Text(chat.User, "q")
	both := chat.Message{Role: chat.Assistant, Origin: &here, Blocks: []chat.Block{listed, asked, called}}
	only := chat.Message{Role: chat.Assistant, Origin: &here, Blocks: []chat.Block{listed, asked}}
	messages := []chat.Message{question, both, result("a"), result("c"), only, result("a")}
	if d := cmp.Diff(messages, wire.ForOrigin(messages, &here)); d != "" {
		t.Errorf("to its origin: %s", d)
	}
	want := []chat.Message{question, {Role: chat.Assistant, Blocks: []chat.Block{called}}, result("c")}
	got := wire.ForOrigin(messages, &other)
	got[1].Origin = nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("to another provider: %s", d)
	}
	if len(both.Blocks) != 3 {
		t.Error("the given messages were changed")
	}
}
