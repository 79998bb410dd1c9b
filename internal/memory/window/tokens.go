package window

import "github.com/qtype-dev/qtype/spec/chat"

// Counter counts the tokens of a text. It is safe for concurrent use.
type Counter interface{ Count(text string) int }

// MessageCounter is a Counter with a separate rule for whole messages.
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
		if m.Context != "" {
			sent := m.AsSent()
			m = &sent
		}
		return own.CountMessage(m)
	}
	n := 3 + c.Count(string(m.Role))
	for i := range m.Blocks {
		n += blockTokens(c, &m.Blocks[i])
	}
	if m.Context != "" {
		n += c.Count(m.Context + "\n") // as it is joined to the text
	}
	if m.Name != "" {
		n += 1 + c.Count(m.Name)
	}
	if m.Role == chat.Tool || m.Role == chat.Function {
		n += toolResultTokens
	}
	return n
}

// bytesOfItemToken is how many bytes of an item are counted as one token. Providers do not state
// the tokens of encrypted reasoning; its base64 has about this many bytes for each.
const bytesOfItemToken = 4

func blockTokens(c Counter, b *chat.Block) int {
	if b.Item != nil && b.Item.JSON != "" && b.IsModels() && b.Call == nil {
		return len(b.Item.JSON) / bytesOfItemToken // which includes the text
	}
	switch {
	case b.Type == chat.ReasoningType && b.Item == nil: // it is never sent
		return 0
	case b.Call != nil:
		return toolCallTokens + c.Count(b.Call.Name) + c.Count(b.Call.Arguments)
	case b.Type == "image" || b.Type == "audio" || b.Type == "video":
		return mediaTokens
	case b.Type == "file" || b.Type == "bytes" || b.Media():
		return documentTokens
	}
	return c.Count(b.Text)
}
