package modeltest

import "github.com/qtype-dev/qtype/spec/chat"

// PNG is the start of an image.
const PNG = "\x89PNG\r\n\x1a\n"

// ToolImages returns a conversation in which two tools were called at the same time: the
// first returned a text with an image and a sound, the second a text.
func ToolImages() []chat.Message {
	text := func(s string) chat.Block { return chat.Block{Type: "text", Text: s} }
	return []chat.Message{
		chat.Text(chat.User, "Plot it."),
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "call00001", Name: "plot", Arguments: "{}"}, chat.ToolCall{ID: "call00002", Name: "now", Arguments: "{}"}),
		{Role: chat.Tool, Name: "plot", ToolCallID: "call00001", Blocks: []chat.Block{text("a plot"), {Type: "image", Data: []byte(PNG), MimeType: "image/png"},
			{Type: "audio", Data: []byte("OggS"), MimeType: "audio/ogg"}}},
		{Role: chat.Tool, Name: "now", ToolCallID: "call00002", Blocks: []chat.Block{text("noon")}},
	}
}
