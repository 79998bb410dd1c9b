package chat_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec/chat"
)

// reflected is the form of a message as package encoding/json writes it.
type reflected struct {
	ID         string            `json:"id,omitempty"`
	Role       chat.Role         `json:"role"`
	Name       string            `json:"name,omitempty"`
	Blocks     []json.RawMessage `json:"blocks"`
	ToolCalls  []reflectedCall   `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
}

type reflectedCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type reflectedText struct {
	Type     string `json:"type"`
	Content  string `json:"content"`
	MimeType string `json:"mime_type,omitempty"`
}

func reflect(t *rapid.T, v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// TestMessage_MarshalJSON_AsEncodingJSON: messages are written byte for byte as by encoding/json.
func TestMessage_MarshalJSON_AsEncodingJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a<&\"\\\n\t\r\b\f\x00\x1f\x7f\u2028\u2029\uFFFDé😀")), 0, 12, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		m := chat.Message{ID: text.Draw(t, "id"), Role: chat.User, Name: text.Draw(t, "name"), ToolCallID: text.Draw(t, "call")}
		want := reflected{ID: m.ID, Role: m.Role, Name: m.Name, Blocks: []json.RawMessage{}, ToolCallID: m.ToolCallID}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			b := chat.Block{Type: "text", Text: text.Draw(t, "text"), MimeType: text.Draw(t, "type")}
			m.Blocks = append(m.Blocks, b)
			want.Blocks = append(want.Blocks, reflect(t, reflectedText(struct{ Type, Content, MimeType string }{b.Type, b.Text, b.MimeType})))
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			c := chat.ToolCall{ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")}
			m = m.With(c)
			want.ToolCalls = append(want.ToolCalls, reflectedCall(c))
		}
		got, err := m.MarshalJSON()
		if err != nil || !bytes.Equal(got, reflect(t, want)) {
			t.Fatalf("got  %s, %v\nwant %s", got, err, reflect(t, want))
		}
		safe, err := m.AppendHTMLSafeJSON([]byte("before "))
		marshalled, err2 := json.Marshal(m)
		if err != nil || err2 != nil || string(safe) != "before "+string(marshalled) {
			t.Fatalf("got  %s, %v\nwant %s, %v", safe, err, marshalled, err2)
		}
	})
}
