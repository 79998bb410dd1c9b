package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
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
	blocks, calls := splitCalls(m.Blocks)
	for i := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendBlock(b, &blocks[i]); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	if len(calls) > 0 {
		b = appendToolCalls(append(b, `,"tool_calls":[`...), calls)
	}
	b = appendOptional(b, `,"tool_call_id":`, m.ToolCallID)
	b = appendOptional(b, `,"context":`, m.Context)
	if m.Stopped {
		b = append(b, `,"stopped":true`...)
	}
	return append(appendOrigin(b, m.Origin), '}'), nil
}

// splitCalls splits blocks into those of "blocks" and the calls of "tool_calls": the calls, if they
// follow all other blocks and none has an item. Else all are in "blocks", and the other list is empty.
func splitCalls(blocks []Block) (first, calls []Block) {
	n := len(blocks)
	for n > 0 && blocks[n-1].Call != nil && blocks[n-1].Item == nil {
		n--
	}
	for i := range blocks[:n] {
		if blocks[i].Call != nil {
			return blocks, nil
		}
	}
	return blocks[:n], blocks[n:]
}

func appendBlock(b []byte, block *Block) ([]byte, error) {
	if block.Call != nil {
		b = appendCall(append(b, `{"type":"tool_call",`...), block.Call)
		return append(appendItem(b, block.Item), '}'), nil
	}
	switch {
	case block.Data != nil:
	case block.Type == "text", block.Type == "date", block.Type == "datetime", block.Type == "time", block.IsModels():
		b = appendText(append(b, `{"type":`...), block.Type)
		b = appendText(append(b, `,"content":`...), block.Text)
		b = appendOptional(b, `,"mime_type":`, block.MimeType)
		return append(appendItem(b, block.Item), '}'), nil
	}
	content, err := block.content()
	if err != nil {
		return nil, err
	}
	raw, err := compact(blockJSON{Type: block.Type, Content: content, MimeType: block.MimeType})
	if err != nil || block.Item == nil {
		return append(b, raw...), err
	}
	return append(appendItem(append(b, raw[:len(raw)-1]...), block.Item), '}'), nil
}

func appendToolCalls(b []byte, calls []Block) []byte {
	for i := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendCall(append(b, '{'), calls[i].Call), '}')
	}
	return append(b, ']')
}

// appendCall appends the members of a call.
func appendCall(b []byte, c *ToolCall) []byte {
	b = appendText(append(b, `"id":`...), c.ID)
	b = appendText(append(b, `,"name":`...), c.Name)
	return appendText(append(b, `,"arguments":`...), c.Arguments)
}

// appendItem appends the member of an item. Its JSON is a string, which no store changes.
func appendItem(b []byte, item *Item) []byte {
	if item == nil {
		return b
	}
	b = appendText(append(b, `,"item":{"field":`...), item.Field)
	return append(appendOptional(b, `,"json":`, item.JSON), '}')
}

func appendOrigin(b []byte, o *Origin) []byte {
	if o == nil {
		return b
	}
	b = appendText(append(b, `,"origin":{"api":`...), o.API)
	b = appendText(append(b, `,"server":`...), o.Server)
	b = appendText(append(b, `,"model":`...), o.Model)
	return append(appendOptional(b, `,"prefix":`, o.Prefix), '}')
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

// CallBlock returns the block of a call.
func CallBlock(c ToolCall) Block { return Block{Type: CallType, Call: &c} }

// With returns the message with calls after its other blocks.
func (m Message) With(calls ...ToolCall) Message {
	m.Blocks = slices.Clip(m.Blocks)
	for _, c := range calls {
		m.Blocks = append(m.Blocks, CallBlock(c))
	}
	return m
}

// Calls returns the requested calls of an assistant's message in their order; nil for none.
func (m *Message) Calls() []ToolCall { return m.appendCalls(nil) }

func (m *Message) appendCalls(calls []ToolCall) []ToolCall {
	for i := range m.Blocks {
		if c := m.Blocks[i].Call; c != nil {
			calls = append(calls, *c)
		}
	}
	return calls
}

// HasCalls reports whether the message requests calls.
func (m *Message) HasCalls() bool {
	for i := range m.Blocks {
		if m.Blocks[i].Call != nil {
			return true
		}
	}
	return false
}

// MapCalls returns the message with each call replaced by the result of change. Items stay: they
// are made for the name and the arguments of a call, which change must not alter.
func (m Message) MapCalls(change func(ToolCall) ToolCall) Message {
	blocks := slices.Clone(m.Blocks)
	for i, b := range blocks {
		if b.Call == nil {
			continue
		}
		c := change(*b.Call)
		blocks[i].Call = &c
	}
	m.Blocks = blocks
	return m
}

// WithoutCalls returns the message without its calls; one that has none stays as it is. It has no
// items either: providers reject items of an answer from which something is missing.
func (m Message) WithoutCalls() Message {
	if !m.HasCalls() {
		return m
	}
	m = m.WithoutItems()
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b Block) bool { return b.Call != nil })
	if len(m.Blocks) == 0 {
		m.Blocks = nil
	}
	return m
}

// WithText returns the message with a text in place of its content; its calls stay. It has no items,
// as they were made for the content that it had.
func (m Message) WithText(text string) Message {
	calls := m.Calls()
	m.Origin, m.Blocks = nil, []Block{{Type: "text", Text: text}}
	return m.With(calls...)
}

// WithoutItems returns the message without its items, so that it can be sent to any model.
func (m Message) WithoutItems() Message {
	m.Origin = nil
	if !slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.Item != nil }) {
		return m
	}
	kept := make([]Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if b.Type == ItemType {
			continue
		}
		b.Item = nil
		kept = append(kept, b)
	}
	m.Blocks = kept
	return m
}

// String names the item without its JSON, which only its provider may read.
func (i *Item) String() string {
	return fmt.Sprintf("[item %s, %s bytes]", i.Field, textfmt.Thousands(len(i.JSON)))
}

// Redacted returns the message with the names of its items in place of their JSON, for logs and traces.
func (m Message) Redacted() Message {
	if !slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.Item != nil }) {
		return m
	}
	m.Blocks = slices.Clone(m.Blocks)
	for i := range m.Blocks {
		if item := m.Blocks[i].Item; item != nil {
			m.Blocks[i].Item = &Item{Field: item.Field, JSON: item.String()}
		}
	}
	return m
}

// CheckGiven returns an error if the message has what only models make: reasoning, commentary, items or
// an origin. The message of a caller must not have them, because they would be sent as if a model had made them.
func (m Message) CheckGiven() error {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; {
		case b.Item != nil:
			return fmt.Errorf("blocks[%d]: an item can only come from a model: remove it", i)
		case b.IsModels() && b.Call == nil:
			return fmt.Errorf("blocks[%d]: a block of type %s can only come from a model: remove it", i, b.Type)
		}
	}
	if m.Origin != nil {
		return errors.New("origin: it can only come from a model: remove it")
	}
	return nil
}

// Content returns the message as its reader sees it: without items, reasoning and commentary, and
// with the calls after all other blocks.
func (m Message) Content() Message {
	m = m.WithoutItems()
	if !slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.IsModels() }) {
		return m
	}
	calls := m.Calls()
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(b Block) bool { return b.IsModels() })
	return m.With(calls...)
}
