package chat

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestOpenAI_Text: a message of one text has the form that package encoding/json writes.
func TestOpenAI_Text(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a\"\\\n\u2028<é"))))
	rapid.Check(t, func(t *rapid.T) {
		m := Message{Role: rapid.SampledFrom(Roles()).Draw(t, "role"), Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "call"),
			Blocks: []Block{{Type: "text", Text: text.Draw(t, "text")}}}
		want, err := compact(openAIMessage{Role: openAIRole(m.Role), Name: m.Name, ToolCallID: m.ToolCallID, Content: openAIContent(m)})
		if got := OpenAI(m); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got  %s\nwant %s, %v", got, want, err)
		}
	})
}
