package runtime

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// The kinds of values in a kept row. Behind the kind stands the value; texts,
// bytes and lists have their length in front.
const (
	tagNull      byte = iota
	keptUnset         // nothing was ever set
	keptLast          // what the slot held in the row before, and no copy of it
	keptFalse         //
	keptTrue          //
	keptInt           // varint
	keptFloat         // 8 bytes, little endian
	keptText          // UTF-8
	keptBytes         //
	keptList          // values
	keptRecord        // the type's name, the number of fields, their names and values
	keptMessage       // the language's own form of a message, as JSON
	keptDate          // as text
	keptDateTime      // as text
	keptTime          // as text
	keptNumber        // digits, as text
)

// rowEncoder writes rows as a Keeper keeps them: their session and number, why
// they failed, and the values of some slots. Of what one row became, a value that
// stands in the same slot again is written once: it is mostly long, and Collect
// tells lists of one content apart by who made them.
type rowEncoder struct {
	slots     []int // those that are written
	anonymous bool  // messages go without their ids, which are new in each run
	last      []any // by slot of slots: what was written last
}

// reset begins with the results of another row.
func (e *rowEncoder) reset() { clear(e.last) }

// row appends a row.
func (e *rowEncoder) row(b []byte, row *steps.Row) []byte {
	if e.last == nil {
		e.last = make([]any, len(e.slots))
	}
	b = binary.AppendVarint(appendText(b, row.Session), row.Number)
	b = appendError(b, row.Err)
	for i, at := range e.slots {
		v := row.Values[at]
		switch {
		case v == any(value.Unset):
			b = append(b, keptUnset)
		case isSameReference(e.last[i], v):
			b = append(b, keptLast)
		default:
			b = e.value(b, v)
			e.last[i] = v
		}
	}
	return b
}

// appendError appends why a row failed: the steps that lead to the failure, 0 for
// none, the code and the reason.
func appendError(b []byte, err *steps.Error) []byte {
	if err == nil {
		return append(b, 0)
	}
	path, reason := err.Path()
	b = binary.AppendUvarint(append(b, 1), uint64(len(path)))
	for _, step := range path {
		b = appendText(b, step)
	}
	return appendText(appendText(b, ErrorCode(err)), reason.Error())
}

// isSameReference tells whether two values are one, not only of one content.
func isSameReference(a, b any) bool {
	switch a := a.(type) {
	case string:
		s, ok := b.(string)
		return ok && a == s
	case []any:
		list, ok := b.([]any)
		return ok && len(a) == len(list) && len(a) > 0 && &a[0] == &list[0]
	case []byte:
		data, ok := b.([]byte)
		return ok && len(a) == len(data) && len(a) > 0 && &a[0] == &data[0]
	case *value.Record:
		return any(a) == b
	}
	return false
}

// value appends a value.
func (e *rowEncoder) value(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, tagNull)
	case value.UnsetType:
		return append(b, keptUnset)
	case bool:
		if v {
			return append(b, keptTrue)
		}
		return append(b, keptFalse)
	case int64:
		return binary.AppendVarint(append(b, keptInt), v)
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, keptFloat), math.Float64bits(v))
	case string:
		return appendText(append(b, keptText), v)
	case chat.Role:
		return appendText(append(b, keptText), string(v))
	case []byte:
		return appendText(append(b, keptBytes), v)
	case json.Number:
		return appendText(append(b, keptNumber), string(v))
	case value.Date:
		return appendText(append(b, keptDate), v.String())
	case value.DateTime:
		return appendText(append(b, keptDateTime), v.String())
	case value.Time:
		return appendText(append(b, keptTime), v.String())
	}
	return e.compound(b, v)
}

// compound appends a value that is made of others.
func (e *rowEncoder) compound(b []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		b = binary.AppendUvarint(append(b, keptList), uint64(len(v)))
		for _, item := range v {
			b = e.value(b, item)
		}
		return b
	case *value.Record:
		b = appendText(append(b, keptRecord), v.Type())
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for name, field := range v.All() {
			b = e.value(appendText(b, name), field)
		}
		return b
	case chat.Message:
		if e.anonymous {
			v.ID = ""
		}
		text, _ := json.Marshal(v) // a message always has a written form
		return appendText(append(b, keptMessage), text)
	}
	return e.value(b, value.FromGo(v))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
