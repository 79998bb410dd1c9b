package value

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec"
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
			m = m.With(chat.ToolCall{ID: text("id"), Name: text("tool"), Arguments: text("arguments")})
		}
		got, want := string(JSON(m)), string(appendRecord(nil, messageRecord(m)))
		if got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// TestTextMessage: objects that are read directly are read like all others.
func TestTextMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Just("\xff"), rapid.Just("text"), rapid.Just("user"))
		pick := func(name string, usual any) any {
			return rapid.SampledFrom([]any{usual, usual, usual, nil, int64(1), text.Draw(t, name)}).Draw(t, name)
		}
		var blocks []any
		for range rapid.IntRange(0, 2).Draw(t, "blocks") {
			blocks = append(blocks, NewRecord("", Field{"type", pick("type", "text")}, Field{"content", pick("content", text.Draw(t, "text"))}))
		}
		r := NewRecord("", Field{"role", pick("role", "user")}, Field{"blocks", pick("list", blocks)})
		got, ok := textMessage(r)
		if !ok {
			return
		}
		var want chat.Message
		if err := json.Unmarshal(JSON(r), &want); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		if got.ID = want.ID; !cmp.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", r, got, want)
		}
	})
}

// TestParseCell_Objects: only an object with the names of a message or of bytes is one.
func TestParseCell_Objects(t *testing.T) {
	message := `{"role":"user","blocks":[{"type":"text","content":"hi"}]}`
	for cell, want := range map[string]string{
		message: "hi",
		strings.Replace(message, "blocks", `block\u0073`, 1): "hi",
		`{"role":"user"}`: `{"role":"user"}`,
		`["blocks"]`:      `["blocks"]`,
		`{"blocks"`:       `{"blocks"`,
	} {
		got, err := Coerce(spec.Type{Name: "ChatMessage"}, ParseCell(cell))
		if m, ok := got.(chat.Message); err != nil || !ok || m.Text() != want {
			t.Errorf("%s: got %v, %v, want %q", cell, got, err, want)
		}
	}
}

// TestCoerce_ModelsBlocks: a value that a tool or a caller gives as a message has nothing that only models make.
func TestCoerce_ModelsBlocks(t *testing.T) {
	for text, want := range map[string]string{
		`{"role": "assistant", "blocks": [{"type": "reasoning", "content": "x"}]}`:                                         "blocks[0]: a block of type reasoning can only come from a model",
		`{"role": "assistant", "blocks": [{"type": "text", "content": "x", "item": {"field": "signature", "json": "1"}}]}`: "blocks[0]: an item can only come from a model",
		`{"role": "assistant", "blocks": [], "origin": {"api": "messages"}}`:                                               "origin: it can only come from a model",
		`{"role": "assistant", "blocks": [], "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}]}`:                 "",
	} {
		v, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Coerce(spec.Type{Name: chatMessage}, v)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
