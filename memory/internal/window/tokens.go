package window

import "github.com/qtype-dev/qtype/spec/chat"

// Counter counts the tokens of a text. It is safe for concurrent use.
type Counter interface{ Count(text string) int }

// MessageCounter is a Counter that counts whole messages by a rule other than
// that of Tokens.
type MessageCounter interface {
	Counter
	// CountMessage returns the tokens of a message, which it must not modify.
	CountMessage(m *chat.Message) int
}

// Tokens of media of any size.
const (
	mediaTokens    = 256  // an image, audio or video
	documentTokens = 2048 // a file
)

// Tokens that the chat templates of models write around a tool call and around the
// result of one, as measured in decision 49.
const (
	toolCallTokens   = 12
	toolResultTokens = 9
)

// Tokens returns the size of a message by OpenAI's published rule: 3, the role, the
// content, and the name plus 1 if there is one. Each tool call adds its name, its
// arguments and 12, the result of a tool 9, for what templates write around them.
func Tokens(c Counter, m chat.Message) int { return TokensOf(c, &m) }

// TokensOf is Tokens for a message that it does not copy.
func TokensOf(c Counter, m *chat.Message) int {
	if own, ok := c.(MessageCounter); ok {
		return own.CountMessage(m)
	}
	n := 3 + c.Count(string(m.Role))
	for _, b := range m.Blocks {
		n += blockTokens(c, b)
	}
	if m.Name != "" {
		n += 1 + c.Count(m.Name)
	}
	for _, call := range m.ToolCalls {
		n += toolCallTokens + c.Count(call.Name) + c.Count(call.Arguments)
	}
	if m.Role == chat.Tool || m.Role == chat.Function {
		n += toolResultTokens
	}
	return n
}

func blockTokens(c Counter, b chat.Block) int {
	switch {
	case b.Type == "image" || b.Type == "audio" || b.Type == "video":
		return mediaTokens
	case b.Type == "file" || b.Type == "bytes" || b.Media():
		return documentTokens
	}
	return c.Count(b.Text)
}
