package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// maxDepth is how deep lists and records may be nested in encoded values: a
// damaged encoding must not exhaust the stack.
const maxDepth = 10_000

// errMalformed reports an encoding that no RowEncoder has written.
var errMalformed = errors.New("malformed row")

// ReplayedError is the failure of a row in an earlier run.
type ReplayedError struct {
	Code   string // the kind of the failure
	Reason string // its text
}

// Error returns the reason.
func (e *ReplayedError) Error() string { return e.Reason }

// RowDecoder reads the rows that a RowEncoder with the same slots wrote, in the
// same order.
type RowDecoder struct {
	Slots  []int // the slots to read
	NewIDs bool  // give messages new ids

	reader
	previous []any // by index in Slots: the value that was read last
	depth    int
}

// Decode reads a row into row, whose values are all unset.
func (d *RowDecoder) Decode(text []byte, row *steps.Row) error {
	if d.previous == nil {
		d.previous = make([]any, len(d.Slots))
	}
	d.reader, d.depth = reader{text: text}, 0
	row.Session, row.Number = d.string(), d.varint()
	if d.byte() != 0 {
		row.Err = d.failure()
	}
	for i, slot := range d.Slots {
		switch tag := d.byte(); tag {
		case tagUnset:
		case tagSame:
			row.Values[slot] = d.previous[i]
		default:
			d.previous[i] = d.value(tag)
			row.Values[slot] = d.previous[i]
		}
	}
	if d.bad || len(d.text) > 0 {
		return errMalformed
	}
	return nil
}

// failure reads why a row failed.
func (d *RowDecoder) failure() *steps.Error {
	var path []string
	for range d.length() {
		path = append(path, d.string())
	}
	var err error = &ReplayedError{Code: d.string(), Reason: d.string()}
	if len(path) == 0 {
		return &steps.Error{Err: err}
	}
	for i := len(path) - 1; i > 0; i-- {
		err = &steps.Error{Step: path[i], Err: err}
	}
	return &steps.Error{Step: path[0], Err: err}
}

// value reads a value with the given tag.
func (d *RowDecoder) value(tag byte) any {
	switch tag {
	case tagNull:
		return nil
	case tagUnset:
		return value.Unset
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagInt:
		return d.varint()
	case tagFloat:
		if b := d.next(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case tagText:
		return d.string()
	case tagBytes:
		return append([]byte{}, d.bytes()...)
	case tagNumber:
		return json.Number(d.string())
	case tagDate:
		return d.scalar("date")
	case tagDateTime:
		return d.scalar("datetime")
	case tagTime:
		return d.scalar("time")
	case tagList, tagRecord, tagMessage:
		return d.compound(tag)
	}
	d.fail()
	return nil
}

// compound reads a value that has other values in it.
func (d *RowDecoder) compound(tag byte) any {
	if d.depth++; d.depth > maxDepth {
		d.fail()
	}
	defer func() { d.depth-- }()
	switch tag {
	case tagList:
		list := []any{}
		for range d.length() {
			list = append(list, d.value(d.byte()))
		}
		return list
	case tagRecord:
		name := d.string()
		var fields []value.Field
		for range d.length() {
			fields = append(fields, value.Field{Name: d.string(), Value: d.value(d.byte())})
		}
		return value.NewRecord(name, fields...)
	}
	var m chat.Message
	if err := json.Unmarshal(d.bytes(), &m); err != nil {
		d.fail()
	}
	if d.NewIDs {
		m.ID = chat.NewID()
	}
	return m
}

// scalar reads a text as a value of the named type.
func (d *RowDecoder) scalar(name string) any {
	v, err := value.Coerce(spec.Type{Name: name}, d.string())
	if err != nil {
		d.fail()
	}
	return v
}
