package steps_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// TestDigestParts checks that a run that was interrupted is found by later versions: the parts
// of a turn's key are those that package fmt wrote.
func TestDigestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		m := chat.Message{ID: "not a part", Role: chat.Role(text.Draw(t, "role")), Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "call")}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m = m.With(chat.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "tool"), Arguments: text.Draw(t, "arguments")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "blocks") {
			m.Blocks = append(m.Blocks, chat.Block{Type: text.Draw(t, "type"), Text: text.Draw(t, "text"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"), MimeType: text.Draw(t, "mime")})
		}
		want := fmt.Appendf(nil, "\n%q %q %q %q", m.Role, m.Name, m.ToolCallID, m.Calls())
		for _, b := range m.Blocks {
			if b.Call != nil {
				continue
			}
			want = fmt.Appendf(want, " %q %q %q %q", b.Type, b.Text, b.Data, b.MimeType)
		}
		if got := steps.DigestParts(&m); !bytes.Equal(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
