package agui

import (
	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/spec/value"
)

// field is a member of an event.
type field struct {
	name  string
	value any
}

// object appends an event as a frame.
func object(b []byte, typ string, fields ...field) []byte {
	b = append(b, `data: {"type":"`...)
	b = append(append(b, typ...), '"')
	for _, f := range fields {
		b = jsontext.AppendField(b, f.name, f.value)
	}
	return append(b, "}\n\n"...)
}

// deltaObject appends an event with a delta.
func deltaObject(b []byte, typ, id, delta string) []byte {
	b = append(b, `data: {"type":"`...)
	b = append(append(b, typ...), `","messageId":"`...)
	b = append(append(b, id...), `","delta":`...)
	b = value.AppendJSON(b, delta)
	return append(b, "}\n\n"...)
}
