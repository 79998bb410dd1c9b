package chat

import (
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
)

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
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
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
