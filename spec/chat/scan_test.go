package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestScanMessage: what the fast reader accepts, the other one reads alike, and it accepts every
// message without media that was written. What is read is what was written, also an item's JSON.
func TestScanMessage(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\"\\\n\u2028<é😀,]}"))))
	rapid.Check(t, func(t *rapid.T) {
		m := Message{ID: text.Draw(t, "id"), Role: rapid.SampledFrom(Roles()).Draw(t, "role"), Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "call"), Stopped: rapid.Bool().Draw(t, "stopped")}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			b := Block{Type: rapid.SampledFrom([]string{"text", ReasoningType, CommentaryType, CallType, ItemType}).Draw(t, "kind")}
			if b.Type == CallType {
				b.Call = &ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")}
			} else {
				b.Text, b.MimeType = text.Draw(t, "text"), text.Draw(t, "type")
			}
			if b.Type == ItemType || rapid.Bool().Draw(t, "has item") {
				b.Item = &Item{Field: text.Draw(t, "field"), JSON: text.Draw(t, "json")}
				m.Origin = &Origin{API: text.Draw(t, "api"), Server: text.Draw(t, "server"), Model: text.Draw(t, "model"), Prefix: text.Draw(t, "prefix")}
			}
			m.Blocks = append(m.Blocks, b)
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m = m.With(ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")})
		}
		raw, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := scanMessage(raw)
		if d := cmp.Diff(m, got); !ok || d != "" {
			t.Fatalf("%s: %v %s", raw, ok, d)
		}
		raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("\"\\{}[],: ax\n\x80")).Draw(t, "byte")
		if got, ok := scanMessage(raw); ok {
			want, err := readMessage(raw)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Fatalf("%s: %v %s", raw, err, d)
			}
		}
	})
}
