package telemetry

import (
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// spanOverhead is the approximate size of a span without inputs and outputs, in bytes.
const spanOverhead = 1500

// size returns the approximate size of a span that begins, in bytes. Texts that several
// spans share count in each of them.
func (s *recordedSpan) size() int64 {
	n := int64(spanOverhead)
	for i := range s.messages {
		n += messageSize(&s.messages[i])
	}
	for _, text := range s.op.Texts {
		n += int64(len(text))
	}
	for _, v := range s.op.Arguments {
		n += sizeOf(v)
	}
	return n + fieldsSize(s.op.Input)
}

// resultSize returns the approximate size of what an operation returned, in bytes.
func resultSize(r *steps.OperationResult) int64 {
	n := fieldsSize(r.Input) + fieldsSize(r.Output) + sizeOf(r.Returned) + int64(8*len(r.Retrieved))
	if r.Response != nil {
		n += messageSize(&r.Response.Message)
	}
	return n
}

func messageSize(m *chat.Message) int64 {
	n := int64(128)
	for i := range m.Blocks {
		b := &m.Blocks[i]
		n += int64(b.Size()) + int64(len(b.Data))/3 // data is written in base64
	}
	return n
}

func fieldsSize(fields []value.Field) int64 {
	n := int64(0)
	for _, f := range fields {
		n += int64(len(f.Name)) + sizeOf(f.Value)
	}
	return n
}

// sizeOf returns the approximate size of a value.
func sizeOf(v any) int64 {
	n := int64(16)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case []byte:
		n += int64(len(v))
	case chat.Message:
		n += messageSize(&v)
	case []any:
		for _, item := range v {
			n += sizeOf(item)
		}
	case map[string]any:
		for name, item := range v {
			n += int64(len(name)) + sizeOf(item)
		}
	case *value.Record:
		if v == nil {
			break
		}
		for name, item := range v.All() {
			n += int64(len(name)) + sizeOf(item)
		}
	}
	return n
}
