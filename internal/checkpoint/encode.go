package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// The first byte of an encoded value is its tag. Lengths and counts are
// uvarints; texts, bytes and lists begin with theirs.
const (
	tagNull     byte = iota
	tagUnset         // the variable was never set
	tagSame          // the value that the same slot of the row before has, and not a copy of it
	tagFalse         //
	tagTrue          //
	tagInt           // varint
	tagFloat         // 8 bytes, little endian
	tagText          // UTF-8
	tagBytes         //
	tagList          // the elements
	tagRecord        // the name of the type, the number of fields, their names and values
	tagMessage       // the message as JSON, as the language writes it
	tagDate          // as text
	tagDateTime      // as text
	tagTime          // as text
	tagNumber        // the digits, as text
)

// RowEncoder writes rows: session, number, error and the values of some slots. A value
// that is the same object in the previous row is written once: such values are mostly
// long, and Collect groups rows by the identity of the list that Explode took.
type RowEncoder struct {
	Slots     []int                     // the slots to write
	Code      func(*steps.Error) string // returns the kind of a row's failure; may be nil if no row has failed
	Anonymous bool                      // leave out the ids of messages, which differ from run to run

	previous []any // by index in Slots: the value that was written last
}

// Reset starts a new sequence of rows, which a RowDecoder can read by itself.
func (e *RowEncoder) Reset() { clear(e.previous) }

// Append appends a row to b.
func (e *RowEncoder) Append(b []byte, row *steps.Row) []byte {
	if e.previous == nil {
		e.previous = make([]any, len(e.Slots))
	}
	b = binary.AppendVarint(appendText(b, row.Session), row.Number)
	b = e.appendError(b, row.Err)
	for i, slot := range e.Slots {
		v := row.Values[slot]
		switch {
		case v == any(value.Unset):
			b = append(b, tagUnset)
		case isSameReference(e.previous[i], v):
			b = append(b, tagSame)
		default:
			b = appendValue(b, v, e.Anonymous)
			e.previous[i] = v
		}
	}
	return b
}

// appendError appends why a row failed: 0 for a row that did not; else 1, the
// path of steps, the kind of the failure and its text.
func (e *RowEncoder) appendError(b []byte, err *steps.Error) []byte {
	if err == nil {
		return append(b, 0)
	}
	path, reason := err.Path()
	b = binary.AppendUvarint(append(b, 1), uint64(len(path)))
	for _, step := range path {
		b = appendText(b, step)
	}
	return appendText(appendText(b, e.Code(err)), reason.Error())
}

// isSameReference reports whether two values are one object, not only equal.
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

// AppendValue appends a value to b. Equal values have equal encodings: the ids
// of messages are left out.
func AppendValue(b []byte, v any) []byte { return appendValue(b, v, true) }

func appendValue(b []byte, v any, anonymous bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, tagNull)
	case value.UnsetType:
		return append(b, tagUnset)
	case bool:
		if v {
			return append(b, tagTrue)
		}
		return append(b, tagFalse)
	case int64:
		return binary.AppendVarint(append(b, tagInt), v)
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, tagFloat), math.Float64bits(v))
	case string:
		return appendText(append(b, tagText), v)
	case chat.Role:
		return appendText(append(b, tagText), string(v))
	case []byte:
		return appendText(append(b, tagBytes), v)
	case json.Number:
		return appendText(append(b, tagNumber), string(v))
	case value.Date:
		return appendText(append(b, tagDate), v.String())
	case value.DateTime:
		return appendText(append(b, tagDateTime), v.String())
	case value.Time:
		return appendText(append(b, tagTime), v.String())
	}
	return appendCompound(b, v, anonymous)
}

// appendCompound appends a value that has other values in it.
func appendCompound(b []byte, v any, anonymous bool) []byte {
	switch v := v.(type) {
	case []any:
		b = binary.AppendUvarint(append(b, tagList), uint64(len(v)))
		for _, item := range v {
			b = appendValue(b, item, anonymous)
		}
		return b
	case *value.Record:
		b = appendText(append(b, tagRecord), v.Type())
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for name, field := range v.All() {
			b = appendValue(appendText(b, name), field, anonymous)
		}
		return b
	case chat.Message:
		if anonymous {
			v.ID = ""
		}
		return appendMessage(append(b, tagMessage), &v)
	}
	return appendValue(b, value.FromGo(v), anonymous)
}

// appendMessage appends a message as JSON, after its length.
func appendMessage(b []byte, m *chat.Message) []byte {
	start := len(b)
	text, err := m.AppendHTMLSafeJSON(b)
	if err != nil { // a message that is not valid
		return append(b, 0)
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(text)-start))
	return slices.Insert(text, start, length[:n]...)
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
