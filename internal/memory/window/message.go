package window

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// CheckMessages returns an error for messages that cannot be stored.
func CheckMessages(msgs []chat.Message) error {
	for i := range msgs {
		if isPlain(&msgs[i]) {
			continue
		}
		if err := msgs[i].Check(); err != nil {
			return fmt.Errorf("message cannot be stored: %w", err)
		}
	}
	return nil
}

// isPlain reports whether a message is one text of a frequent role, which is always valid.
func isPlain(msg *chat.Message) bool {
	switch msg.Role {
	case chat.User, chat.Assistant, chat.Tool, chat.System:
	default:
		return false
	}
	return len(msg.Blocks) == 1 && msg.Blocks[0].Type == "text" && msg.Blocks[0].Data == nil
}

// NewEntry returns an entry for msg with an id and its token count.
func NewEntry(c Counter, msg chat.Message) *store.Entry {
	if msg.ID == "" {
		msg.ID = chat.NewID()
	}
	if !isValidUTF8(&msg) {
		msg = sanitizeUTF8(msg)
	}
	e := &store.Entry{Message: msg}
	e.Tokens = TokensOf(c, &e.Message)
	return e
}

func isValidUTF8(msg *chat.Message) bool {
	for i := range msg.Blocks {
		b := &msg.Blocks[i]
		if !utf8.ValidString(b.Text) || !utf8.ValidString(b.MimeType) || b.Item != nil && !(utf8.ValidString(b.Item.Field) && utf8.ValidString(b.Item.JSON)) {
			return false
		}
		if c := b.Call; c != nil && !(utf8.ValidString(c.ID) && utf8.ValidString(c.Name) && utf8.ValidString(c.Arguments)) {
			return false
		}
	}
	return utf8.ValidString(msg.Context) && utf8.ValidString(msg.ID) && utf8.ValidString(msg.Name) && utf8.ValidString(msg.ToolCallID)
}

// sanitizeUTF8 returns a copy of msg with valid UTF-8 in all texts. Stores write
// JSON, which has no other, and a window must not change with a restart.
func sanitizeUTF8(msg chat.Message) chat.Message {
	msg.Blocks = slices.Clone(msg.Blocks)
	for i, b := range msg.Blocks {
		msg.Blocks[i].Text, msg.Blocks[i].MimeType = ValidText(b.Text), ValidText(b.MimeType)
		if c := b.Call; c != nil {
			msg.Blocks[i].Call = &chat.ToolCall{ID: ValidText(c.ID), Name: ValidText(c.Name), Arguments: ValidText(c.Arguments)}
		}
		if item := b.Item; item != nil {
			msg.Blocks[i].Item = &chat.Item{Field: ValidText(item.Field), JSON: ValidText(item.JSON)}
		}
	}
	msg.ID, msg.Name, msg.ToolCallID = ValidText(msg.ID), ValidText(msg.Name), ValidText(msg.ToolCallID)
	msg.Context = ValidText(msg.Context)
	return msg
}

// ValidText returns a text with a replacement character in place of invalid UTF-8.
func ValidText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// IsSystem reports whether e is a system message.
func IsSystem(e *store.Entry) bool { return e.Message.Role == chat.System }

// IsUser reports whether e is a user message.
func IsUser(e *store.Entry) bool { return e.Message.Role == chat.User }

// IsResult reports whether e answers a tool call.
func IsResult(e *store.Entry) bool {
	return e.Message.Role == chat.Tool || e.Message.Role == chat.Function
}

// IsToolUse reports whether e has tool calls or answers one.
func IsToolUse(e *store.Entry) bool { return e.Message.HasCalls() || IsResult(e) }

// EqualSystem reports whether two system messages have the same content.
func EqualSystem(a, b *chat.Message) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Blocks, b.Blocks, func(x, y chat.Block) bool {
		return x.Type == y.Type && x.Text == y.Text && x.MimeType == y.MimeType && string(x.Data) == string(y.Data)
	})
}

// LastUser returns the index of the last user message, -1 for none.
func LastUser(entries []*store.Entry) int {
	for i, e := range slices.Backward(entries) {
		if IsUser(e) {
			return i
		}
	}
	return -1
}

// approximateBytes returns about how much memory an entry uses: media use more than their tokens.
func approximateBytes(e *store.Entry) int {
	n := 512 + len(e.Message.Context) // the structs around the texts
	for i := range e.Message.Blocks {
		b := &e.Message.Blocks[i]
		n += len(b.Text) + len(b.Data)
		if b.Call != nil {
			n += len(b.Call.Arguments)
		}
		if b.Item != nil {
			n += len(b.Item.JSON)
		}
	}
	return n
}

// hasText reports whether a block's text is part of a message's content; the
// URL of an image is not.
func hasText(b chat.Block) bool { return b.IsText() }

// Characters returns the number of Unicode code points in a message's texts.
func Characters(m *chat.Message) int {
	n := 0
	for _, b := range m.Blocks {
		if hasText(b) {
			n += utf8.RuneCountInString(b.Text)
		}
	}
	return n
}

// SumTokens returns the tokens of entries.
func SumTokens(entries []*store.Entry) int {
	n := 0
	for _, e := range entries {
		n += e.Tokens
	}
	return n
}
