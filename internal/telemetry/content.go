package telemetry

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// content writes inputs and outputs to spans, unless they are hidden.
type content struct {
	hidden bool
	max    int // the maximum length of a text in bytes
}

// fields are the attributes with variables; side is input or output.
func (c content) fields(side string, fields []value.Field) []attribute.KeyValue {
	if c.hidden || fields == nil {
		return nil
	}
	return c.json(side, fieldsJSON(fields))
}

// json are the attributes with a JSON value.
func (c content) json(side string, text []byte) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(side+".value", c.cut(string(text))), attribute.String(side+".mime_type", "application/json")}
}

// text are the attributes with a text.
func (c content) text(side, text string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(side+".value", c.cut(text)), attribute.String(side+".mime_type", "text/plain")}
}

// cut shortens a text to the maximum length.
func (c content) cut(text string) string {
	if len(text) <= c.max {
		return text
	}
	n := c.max
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s [… %d bytes more]", text[:n], len(text)-n)
}

// messageText returns the text of a message; media and items are named, not written.
func (c content) messageText(m *chat.Message) string {
	text := m.Text()
	var b strings.Builder
	b.WriteString(text)
	for _, block := range m.Blocks {
		switch {
		case block.Media():
			fmt.Fprintf(&b, "[%s, %d bytes]", block.Type, len(block.Data))
		case block.IsModels() && block.Text != "":
			fmt.Fprintf(&b, "[%s: %s]", block.Type, block.Text)
		}
		if block.Item != nil {
			b.WriteString(block.Item.String())
		}
	}
	return b.String()
}
