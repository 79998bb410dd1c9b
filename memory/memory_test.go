package memory_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestNew_InvalidConfig(t *testing.T) {
	for want, cfg := range map[string]memory.Config{
		"memory m needs a token counter":                                            {},
		"memory m: token_limit must be positive, not -1":                            {Limits: memory.Limits{"token_limit": -1}, Counter: runes{}},
		"memory m: chat_history_token_ratio must be above 0 and at most 1, not 1.5": {Limits: memory.Limits{"chat_history_token_ratio": 1.5}, Counter: runes{}},
		"memory m: token_flush_size must be positive, not -3":                       {Limits: memory.Limits{"token_flush_size": -3}, Counter: runes{}},
		"memory m: the number of live sessions must not be negative":                {Live: -1, Counter: runes{}},
	} {
		cfg.ID = "m"
		if _, err := memory.New(cfg, memory.NewInProcess()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := memory.New(memory.Config{ID: "m", Counter: runes{}}, nil); err == nil || err.Error() != "memory m needs a store" {
		t.Errorf("got %v", err)
	}
}

// TestFlush_ChatShare checks that the share is the product of the decimal numbers.
func TestFlush_ChatShare(t *testing.T) {
	for _, c := range []struct {
		limits memory.Limits
		want   int
	}{
		{nil, 70_000},
		{memory.Limits{"token_limit": 50_000, "chat_history_token_ratio": 0.7}, 35_000},
		{memory.Limits{"token_limit": 100, "chat_history_token_ratio": 0.29}, 29},
		{memory.Limits{"token_limit": 100, "chat_history_token_ratio": 0.555}, 55},
		{memory.Limits{"token_limit": 1, "chat_history_token_ratio": 0.5}, 0},
		{memory.Limits{"token_limit": 7, "chat_history_token_ratio": 1}, 7},
	} {
		m, err := memory.New(memory.Config{ID: "m", Limits: c.limits, Counter: runes{}}, memory.NewInProcess())
		testkit.Must(t, err)
		w, err := m.Window(t.Context(), "s")
		testkit.Must(t, err)
		if w.Limit != c.want {
			t.Errorf("%v: %d, want %d", c.limits, w.Limit, c.want)
		}
	}
}

func TestTokens(t *testing.T) {
	text := func(s string) []chat.Block { return []chat.Block{{Type: "text", Text: s}} }
	for _, c := range []struct {
		name string
		m    chat.Message
		want int
	}{
		{"empty", chat.Message{Role: chat.User}, 3 + 4},
		{"text", chat.Message{Role: chat.User, Blocks: text("hello")}, 3 + 4 + 5},
		{"name", chat.Message{Role: chat.User, Name: "bo", Blocks: text("hello")}, 3 + 4 + 5 + 1 + 2},
		{"two texts", chat.Message{Role: chat.User, Blocks: append(text("ab"), text("cd")...)}, 3 + 4 + 4},
		{"calls", chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "long id", Name: "find", Arguments: `{"a":1}`}, chat.ToolCall{Name: "g"}), 3 + 9 + 12 + 4 + 7 + 12 + 1},
		{"result", chat.Message{Role: chat.Tool, ToolCallID: "long id", Blocks: text("42")}, 3 + 4 + 9 + 2},
		{"image", chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "image", Data: make([]byte, 9999)}}}, 3 + 4 + 256},
		{"image by address", chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "image", Text: "https://a.example"}}}, 3 + 4 + 256},
		{"sound, video, document", chat.Message{Role: chat.User, Blocks: []chat.Block{{Type: "audio", Data: []byte{}}, {Type: "video", Data: []byte{}}, {Type: "file", Data: []byte{}}}}, 3 + 4 + 256 + 256 + 2048},
	} {
		if got := memory.Tokens(runes{}, c.m); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
