package memory

import "github.com/qtype-dev/qtype/spec/chat"

// Counter counts the tokens of a text; package token has one for each
// vocabulary. It is safe for concurrent use.
type Counter interface{ Count(text string) int }

// MessageCounter is implemented by counters that count whole messages by a rule
// of their own instead of that of reference memory.md 6.
type MessageCounter interface {
	Counter
	// CountMessage is the size of a message, which it must not change.
	CountMessage(m *chat.Message) int
}

// What media cost, whatever their size (reference memory.md 2.8).
const (
	mediaTokens    = 256  // an image, a sound, a video
	documentTokens = 2048 // a document
)

// Tokens is the size of a message (reference memory.md 6): 3, its role, its
// content and its name with 1 more; tool calls count their names and arguments.
func Tokens(c Counter, m chat.Message) int { return tokensOf(c, &m) }

func tokensOf(c Counter, m *chat.Message) int {
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
		n += c.Count(call.Name) + c.Count(call.Arguments)
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

// Count is how many tokens a text has as this memory counts.
func (m *Memory) Count(text string) int { return m.counter.Count(text) }

// Tokens is the size of a message as this memory counts it.
func (m *Memory) Tokens(msg chat.Message) int { return Tokens(m.counter, msg) }
