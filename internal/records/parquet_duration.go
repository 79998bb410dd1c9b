package records

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// arrowDuration is the number of Arrow's durations, which Parquet does not have: they are whole
// numbers, and only the key ARROW:schema of the file has their unit.
const arrowDuration = 18

// durationType is the meaning of a column of durations.
type durationType struct {
	format.LogicalTypeValue
	unit time.Duration
}

// text returns a duration as hours, minutes and seconds, as in spreadsheets: 49:30:00.5.
func (d *durationType) text(n int64) string {
	perSecond := int64(time.Second / d.unit)
	seconds, rest := n/perSecond, n%perSecond
	sign := ""
	if n < 0 {
		sign, seconds, rest = "-", -seconds, -rest // both are small enough, unless the unit is a second
	}
	hours, minutes := uint64(seconds)/3600, uint64(seconds)/60%60
	out := fmt.Sprintf("%s%02d:%02d:%02d", sign, hours, minutes, uint64(seconds)%60)
	if rest > 0 {
		out += strings.TrimRight(fmt.Sprintf(".%09d", rest*int64(d.unit)), "0")
	}
	return out
}

// addDurations sets the meaning of leaf columns that Arrow's schema of the file describes as durations. A
// schema that does not fit the columns is ignored.
func addDurations(f *parquet.File, meanings []format.LogicalTypeValue) {
	text, _ := f.Lookup("ARROW:schema")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 8 {
		return
	}
	defer func() { _ = recover() }() // the library panics where a schema is damaged
	if binary.LittleEndian.Uint32(raw) == 0xffffffff {
		raw = raw[4:]
	}
	raw = raw[4:] // its length
	message := flatbuffers.Table{Bytes: raw, Pos: flatbuffers.GetUOffsetT(raw)}
	w := arrowLeaves{left: maxArrowFields}
	w.fields(w.table(message, 2), 1)
	if len(w.units) != len(meanings) {
		return
	}
	for i, unit := range w.units {
		if unit != 0 {
			meanings[i] = &durationType{unit: unit}
		}
	}
}

// maxArrowFields bounds the fields of a schema that are read: damaged ones may share what is inside them.
const maxArrowFields = 100_000

// arrowLeaves has the units of the leaf fields of a schema; 0 for other types than durations.
type arrowLeaves struct {
	units []time.Duration
	left  int // the number of fields that may still be read
}

// table returns the table in a slot of a table.
func (w *arrowLeaves) table(t flatbuffers.Table, slot int) flatbuffers.Table {
	at := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(4 + 2*slot)))
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + at)}
}

// fields reads the fields in a slot of a table, and reports whether there are any.
func (w *arrowLeaves) fields(t flatbuffers.Table, slot int) bool {
	at := flatbuffers.UOffsetT(t.Offset(flatbuffers.VOffsetT(4 + 2*slot)))
	if at == 0 {
		return false
	}
	list, n := t.Vector(at), t.VectorLen(at)
	for i := range n {
		if w.left--; w.left < 0 {
			panic("too many fields")
		}
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(list + flatbuffers.UOffsetT(i)*flatbuffers.SizeUOffsetT)}
		if !w.fields(field, 5) {
			w.units = append(w.units, w.unit(field))
		}
	}
	return n > 0
}

// unit returns the unit of a field of durations, 0 for another field.
func (w *arrowLeaves) unit(field flatbuffers.Table) time.Duration {
	kind := flatbuffers.UOffsetT(field.Offset(4 + 2*2))
	if kind == 0 || field.GetByte(field.Pos+kind) != arrowDuration {
		return 0
	}
	typ, unit := w.table(field, 3), int16(1)
	if at := flatbuffers.UOffsetT(typ.Offset(4)); at != 0 {
		unit = typ.GetInt16(typ.Pos + at)
	}
	return []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}[unit]
}
