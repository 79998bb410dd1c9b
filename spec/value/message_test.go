package value

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
)

// TestAppendMessage compares the direct form of messages with that of their records.
func TestAppendMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a\"\\\n\r\t\b\u2028<>&é"))), rapid.Just("\xff")).Draw(t, name)
		}
		m := chat.Message{ID: "m1", Role: rapid.SampledFrom(chat.Roles()).Draw(t, "role"), Name: text("name"), ToolCallID: text("call")}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			typ := rapid.SampledFrom([]string{"text", "date", "datetime", "time", "int", "image", "citation_url"}).Draw(t, "type")
			m.Blocks = append(m.Blocks, chat.Block{Type: typ, Text: text("text"), MimeType: text("mime")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: text("id"), Name: text("tool"), Arguments: text("arguments")})
		}
		got, want := string(JSON(m)), string(appendRecord(nil, messageRecord(m)))
		if got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}
