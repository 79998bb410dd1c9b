package runtime

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// errMalformedRow says that a kept row holds something else than was kept.
var errMalformedRow = errors.New("a row that was kept cannot be read")

// replayedError is why a row failed in an earlier run.
type replayedError struct {
	reason string
	code   string
}

// Error is the reason.
func (e *replayedError) Error() string { return e.reason }

// rowDecoder reads what a rowEncoder of the same slots wrote.
type rowDecoder struct {
	slots []int
	last  []any // by slot of slots
	text  []byte
	bad   bool // something was not there
}

// row reads a row into one on which nothing is set.
func (d *rowDecoder) row(text []byte, row *steps.Row) error {
	if d.last == nil {
		d.last = make([]any, len(d.slots))
	}
	d.text, d.bad = text, false
	row.Session, row.Number = d.string(), d.varint()
	if d.byte() != 0 {
		row.Err = d.failure()
	}
	for i, at := range d.slots {
		kind := d.byte()
		switch kind {
		case keptUnset:
		case keptLast:
			row.Values[at] = d.last[i]
		default:
			d.last[i] = d.value(kind)
			row.Values[at] = d.last[i]
		}
	}
	if d.bad || len(d.text) > 0 {
		return errMalformedRow
	}
	return nil
}

// failure reads why a row failed.
func (d *rowDecoder) failure() *steps.Error {
	var path []string
	for range d.length() {
		path = append(path, d.string())
	}
	var err error = &replayedError{code: d.string(), reason: d.string()}
	if len(path) == 0 {
		return &steps.Error{Err: err}
	}
	for i := len(path) - 1; i > 0; i-- {
		err = &steps.Error{Step: path[i], Err: err}
	}
	return &steps.Error{Step: path[0], Err: err}
}

// value reads a value of a kind.
func (d *rowDecoder) value(kind byte) any {
	switch kind {
	case tagNull:
		return nil
	case keptUnset:
		return value.Unset
	case keptFalse:
		return false
	case keptTrue:
		return true
	case keptInt:
		return d.varint()
	case keptFloat:
		if b := d.take(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case keptText:
		return d.string()
	case keptBytes:
		return append([]byte{}, d.take(d.length())...)
	case keptNumber:
		return json.Number(d.string())
	case keptDate:
		return d.scalar("date")
	case keptDateTime:
		return d.scalar("datetime")
	case keptTime:
		return d.scalar("time")
	case keptList, keptRecord, keptMessage:
		return d.compound(kind)
	}
	d.bad = true
	return nil
}

func (d *rowDecoder) compound(kind byte) any {
	switch kind {
	case keptList:
		list := []any{}
		for range d.length() {
			list = append(list, d.value(d.byte()))
		}
		return list
	case keptRecord:
		name := d.string()
		var fields []value.Field
		for range d.length() {
			fields = append(fields, value.Field{Name: d.string(), Value: d.value(d.byte())})
		}
		return value.NewRecord(name, fields...)
	}
	var m chat.Message
	if err := json.Unmarshal(d.take(d.length()), &m); err != nil {
		d.bad = true
	}
	return m
}

// scalar reads a text as a value of the named type.
func (d *rowDecoder) scalar(name string) any {
	v, err := coerceTo(name, d.string())
	if err != nil {
		d.bad = true
	}
	return v
}

func (d *rowDecoder) byte() byte {
	b := d.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (d *rowDecoder) varint() int64 {
	v, n := binary.Varint(d.text)
	d.take(max(n, 0))
	d.bad = d.bad || n <= 0
	return v
}

// length reads how many bytes or items follow, which are not more than the text has bytes.
func (d *rowDecoder) length() int {
	v, n := binary.Uvarint(d.text)
	if n <= 0 || v > uint64(len(d.text)-n) {
		d.text, d.bad = nil, true
		return 0
	}
	d.take(n)
	return int(v)
}

func (d *rowDecoder) string() string { return string(d.take(d.length())) }

// take reads n bytes; nil where there are not so many.
func (d *rowDecoder) take(n int) []byte {
	if n > len(d.text) {
		d.text, d.bad = nil, true
		return nil
	}
	b := d.text[:n:n]
	d.text = d.text[n:]
	return b
}
