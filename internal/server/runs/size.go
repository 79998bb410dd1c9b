package runs

import (
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// Sizes of what has no other size, in bytes.
const (
	runSize   = 2 << 10
	eventSize = 256
	valueSize = 32
)

// sizeOf returns about how many bytes a run with these events takes.
func sizeOf(log *eventLog) int {
	n := runSize
	events := log.first(log.n)
	for i := range events {
		ev := &events[i]
		n += eventSize + len(ev.Text) + len(ev.Error)
		if ev.Request != nil {
			n += len(ev.Request.Arguments) + len(ev.Request.Schema)
		}
		if ev.Source != nil {
			n += valueSize + len(ev.Source.Text) + len(ev.Source.Title) + len(ev.Source.Heading)
		}
		if ev.Result != nil {
			n += valueSizes(ev.Result.Outputs)
		}
	}
	return n
}

func valueSizes(list []any) int {
	n := 0
	for _, v := range list {
		n += valueSizeOf(v)
	}
	return n
}

func valueSizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return valueSize + len(v)
	case []byte:
		return valueSize + len(v)
	case []any:
		return valueSize + valueSizes(v)
	case *value.Record:
		n := valueSize
		for _, field := range v.All() {
			n += valueSizeOf(field)
		}
		return n
	case chat.Message:
		n := valueSize
		for i := range v.Blocks {
			n += valueSize + v.Blocks[i].Size()
		}
		return n
	}
	return valueSize
}
