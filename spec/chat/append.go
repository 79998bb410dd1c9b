package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/jsontext"
)

// Most messages are texts. They are written without reflection, byte for byte as package
// encoding/json writes them; all other blocks are left to that package.

// appendMessage appends the language's form of a message.
func appendMessage(b []byte, m *Message) ([]byte, error) {
	b = append(b, '{')
	if m.ID != "" {
		b = append(appendText(append(b, `"id":`...), m.ID), ',')
	}
	b = appendText(append(b, `"role":`...), string(m.Role))
	b = appendOptional(b, `,"name":`, m.Name)
	b = append(b, `,"blocks":[`...)
	for i := range m.Blocks {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendBlock(b, &m.Blocks[i]); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	if len(m.ToolCalls) > 0 {
		b = appendToolCalls(append(b, `,"tool_calls":[`...), m.ToolCalls)
	}
	return append(appendOptional(b, `,"tool_call_id":`, m.ToolCallID), '}'), nil
}

func appendBlock(b []byte, block *Block) ([]byte, error) {
	switch {
	case block.Data != nil:
	case block.Type == "text", block.Type == "date", block.Type == "datetime", block.Type == "time":
		b = appendText(append(b, `{"type":`...), block.Type)
		b = appendText(append(b, `,"content":`...), block.Text)
		return append(appendOptional(b, `,"mime_type":`, block.MimeType), '}'), nil
	}
	content, err := block.content()
	if err != nil {
		return nil, err
	}
	raw, err := compact(blockJSON{Type: block.Type, Content: content, MimeType: block.MimeType})
	return append(b, raw...), err
}

func appendToolCalls(b []byte, calls []ToolCall) []byte {
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"id":`...), c.ID)
		b = appendText(append(b, `,"name":`...), c.Name)
		b = append(appendText(append(b, `,"arguments":`...), c.Arguments), '}')
	}
	return append(b, ']')
}

// appendOptional appends a member of an object unless its text is empty.
func appendOptional(b []byte, member, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, member...), text)
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) || strings.Contains(s, "\u2028") || strings.Contains(s, "\u2029") {
		return append(b, quote(s)...)
	}
	before, start := len(b), 0
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			if c < utf8.RuneSelf {
				i += jsontext.Plain(s[i+1:])
			}
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			return append(b[:before], quote(s)...)
		}
	}
	return append(append(b, s[start:]...), '"')
}

// AppendHTMLSafeJSON appends the language's form of a message with escapes for <, > and &, as
// json.Marshal does, but without parsing what was just written. Like it, it fails only
// for messages for which Check fails.
func (m *Message) AppendHTMLSafeJSON(b []byte) ([]byte, error) {
	start := len(b)
	b, err := appendMessage(b, m)
	if err != nil || !needsHTMLEscape(b[start:]) {
		return b, err
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, b[start:])
	return append(b[:start], safe.Bytes()...), nil
}

// needsHTMLEscape reports whether json.HTMLEscape changes a text, or may: 0xe2 begins U+2028 and
// U+2029, and other characters.
func needsHTMLEscape(raw []byte) bool {
	for _, c := range [...]byte{'<', '>', '&', 0xe2} {
		if bytes.IndexByte(raw, c) >= 0 {
			return true
		}
	}
	return false
}
