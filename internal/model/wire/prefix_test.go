package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestWithinPrefix: reasoning is sent while the request before it is what it was, and dropped when
// anything of it has changed.
func TestWithinPrefix(t *testing.T) {
	system, question := chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "Where?")
	tools := []model.Tool{{Name: "find"}}
	first := model.Request{Messages: []chat.Message{system, question}, Tools: tools}
	_, prefix, _ := withinPrefix(first, false)
	answer := chat.Message{ID: "a", Role: chat.Assistant, Origin: &chat.Origin{API: "messages", Prefix: prefix}, Blocks: []chat.Block{
		{Type: chat.ReasoningType, Item: &chat.Item{Field: "thinking", JSON: `{"s":1}`}}, chat.CallBlock(chat.ToolCall{ID: "1", Name: "find"})}}
	result := chat.Message{Role: chat.Tool, ToolCallID: "1", Blocks: []chat.Block{{Type: "text", Text: "here"}}}
	next := func(change func(r *model.Request)) model.Request {
		r := model.Request{Messages: []chat.Message{system, question, answer, result}, Tools: tools}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		change  func(r *model.Request)
		dropped int
	}{
		"the same":           {func(*model.Request) {}, 0},
		"new ids":            {func(r *model.Request) { r.Messages[1].ID = "other" }, 0},
		"more messages":      {func(r *model.Request) { r.Messages = append(r.Messages, chat.Text(chat.User, "And?")) }, 0},
		"another system":     {func(r *model.Request) { r.Messages[0] = chat.Text(chat.System, "Be long.") }, 1},
		"a date behind":      {func(r *model.Request) { r.Messages = append(r.Messages, chat.Text(chat.System, "It is Friday.")) }, 1},
		"an evicted message": {func(r *model.Request) { r.Messages = append(r.Messages[:1:1], r.Messages[2:]...) }, 1},
		"another tool":       {func(r *model.Request) { r.Tools = append(r.Tools[:1:1], model.Tool{Name: "read"}) }, 1},
		"a deferred tool":    {func(r *model.Request) { r.Tools = []model.Tool{{Name: "find", Deferred: true}} }, 1},
		"a strict tool":      {func(r *model.Request) { r.Tools = []model.Tool{{Name: "find", Strict: true}} }, 1},
		"a grammar": {func(r *model.Request) {
			r.Tools = []model.Tool{{Name: "find", Grammar: &model.Grammar{Syntax: "regex", Definition: "a+"}}}
		}, 1},
		"an inserted text": {func(r *model.Request) { r.Messages[1] = chat.Text(chat.User, "Known: x. Where?") }, 1},
	} {
		got, after, dropped := withinPrefix(next(c.change), false)
		if dropped != c.dropped {
			t.Errorf("%s: dropped %d, want %d", name, dropped, c.dropped)
		}
		if reasons := isBound(&got[1]) || len(got) > 2 && isBound(&got[2]); reasons != (c.dropped == 0) {
			t.Errorf("%s: reasoning is sent: %v", name, reasons)
		}
		if after == prefix {
			t.Errorf("%s: the digest does not follow the messages", name)
		}
	}
	behind := next(func(r *model.Request) { r.Messages = append(r.Messages, chat.Text(chat.System, "It is Friday.")) })
	if _, _, dropped := withinPrefix(behind, true); dropped != 0 {
		t.Error("a system message that stays behind drops the reasoning before it")
	}
	if d := cmp.Diff(prefix, answer.Origin.Prefix); d != "" || !isBound(&answer) {
		t.Error("the stored answer was changed")
	}
	// What was dropped is not part of the beginning of later answers either.
	changed := next(func(r *model.Request) { r.Messages[0] = chat.Text(chat.System, "Be long.") })
	_, again, _ := withinPrefix(changed, false)
	later := chat.Message{Role: chat.Assistant, Origin: &chat.Origin{API: "messages", Prefix: again}, Blocks: []chat.Block{{Type: chat.ReasoningType, Item: &chat.Item{}}}}
	changed.Messages = append(changed.Messages, later)
	if got, _, dropped := withinPrefix(changed, false); dropped != 1 || !isBound(&got[4]) {
		t.Errorf("dropped %d, the later reasoning is sent: %v", dropped, isBound(&got[4]))
	}
}
