package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestScanMessage: what the fast reader accepts, the other one reads alike, and it accepts every
// message of texts that was written.
func TestScanMessage(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\"\\\n\u2028<é😀,]}"))))
	rapid.Check(t, func(t *rapid.T) {
		m := Message{ID: text.Draw(t, "id"), Role: rapid.SampledFrom(Roles()).Draw(t, "role"), Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "call")}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			m.Blocks = append(m.Blocks, Block{Type: "text", Text: text.Draw(t, "text"), MimeType: text.Draw(t, "type")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")})
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
