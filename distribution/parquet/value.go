package parquet

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/qtype-dev/qtype/spec/value"
)

// leafValue returns a leaf's value as a record has it. Byte strings are copied: the
// library reuses their memory.
func leafValue(meaning format.LogicalTypeValue, v parquet.Value) any {
	if v.IsNull() {
		return nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		if i, ok := meaning.(*format.IntType); ok && !i.IsSigned {
			return int64(v.Uint32())
		}
		return integer(meaning, int64(v.Int32()))
	case parquet.Int64:
		if i, ok := meaning.(*format.IntType); ok && !i.IsSigned && v.Int64() < 0 {
			return json.Number(new(big.Int).SetUint64(v.Uint64()).String())
		}
		return integer(meaning, v.Int64())
	case parquet.Int96: // a timestamp of an old writer
		return parquetInt96(v)
	case parquet.Float:
		return value.FromFloat32(v.Float())
	case parquet.Double:
		return v.Double()
	}
	return byteString(meaning, bytes.Clone(v.ByteArray()))
}

// integer returns a whole number, or the value that its logical type makes of it.
func integer(meaning format.LogicalTypeValue, n int64) any {
	switch m := meaning.(type) {
	case *format.DateType:
		return isoTime(time.Unix(n*86400, 0), time.DateOnly)
	case *format.TimestampType:
		return timestamp(n, m.Unit.Value.Duration(), m.IsAdjustedToUTC)
	case *format.TimeType:
		d := time.Duration(n) * m.Unit.Value.Duration()
		return time.Unix(0, 0).UTC().Add(d).Format("15:04:05.999999999")
	case *format.DecimalType:
		return decimal(big.NewInt(n), int(m.Scale))
	case *durationType:
		return m.text(n)
	}
	return n
}

// timestamp returns a time in ISO 8601; without a time zone if it is local time.
func timestamp(n int64, unit time.Duration, utc bool) string {
	perSecond := int64(time.Second / unit)
	sec, rest := n/perSecond, n%perSecond
	t := time.Unix(sec, rest*int64(unit))
	if utc {
		return isoTime(t, time.RFC3339Nano)
	}
	return isoTime(t, "2006-01-02T15:04:05.999999999")
}

// isoTime formats a time. ISO 8601 writes years before 1 and after 9999 with a sign.
func isoTime(t time.Time, layout string) string {
	t = t.UTC()
	year := t.Year()
	if year >= 0 && year <= 9999 {
		return t.Format(layout)
	}
	return fmt.Sprintf("%+05d", year) + t.Format(layout[len("2006"):])
}

// parquetInt96 converts the nanoseconds of a day and the Julian number of that day.
func parquetInt96(v parquet.Value) string {
	const julianEpoch = 2440588 // 1970-01-01
	i := v.Int96()
	nanos := int64(i[1])<<32 | int64(i[0])
	return time.Unix((int64(i[2])-julianEpoch)*86400, nanos).UTC().Format(time.RFC3339Nano)
}

// byteString returns text, JSON, a decimal, a UUID or plain bytes.
func byteString(meaning format.LogicalTypeValue, b []byte) any {
	switch m := meaning.(type) {
	case *format.StringType, *format.EnumType:
		return string(b)
	case *format.JsonType:
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return string(b)
		}
		return v
	case *format.DecimalType:
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 { // two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
		}
		return decimal(n, int(m.Scale))
	case *format.UUIDType:
		return uuidText(b)
	case *format.Float16Type:
		if len(b) == 2 {
			return halfFloat(binary.LittleEndian.Uint16(b))
		}
	}
	return b
}

// halfFloat returns a float of 16 bits (IEEE 754).
func halfFloat(bits uint16) float64 {
	sign := 1.0
	if bits&0x8000 != 0 {
		sign = -1
	}
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	switch {
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	case exponent < 0x1f:
		return sign * math.Ldexp(fraction+1024, exponent-25)
	case fraction != 0:
		return math.NaN()
	}
	return math.Inf(int(sign))
}

// decimal returns n with its decimal point moved left by scale digits.
func decimal(n *big.Int, scale int) value.Decimal {
	digits := new(big.Int).Abs(n).String()
	if scale > 0 {
		for len(digits) <= scale {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		digits = "-" + digits
	}
	return value.Decimal(digits)
}

// uuidText formats 16 bytes as 8-4-4-4-12 hexadecimal digits.
func uuidText(b []byte) any {
	const digits = "0123456789abcdef"
	if len(b) != 16 {
		return b
	}
	var out []byte
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// timeLeaf is a leaf column of dates and times, or of times of day. A column of Parquet
// has one precision, and either instants or local times. Both follow from the first
// values; if these contradict each other, the column is ISO 8601 text.
type timeLeaf struct {
	name   string
	day    bool // times of day
	zoned  bool // a value has a time zone
	local  bool // a value has none
	nanos  bool // a value is more precise than a microsecond
	wide   bool // a value is outside of the range of nanoseconds
	isText bool // the column is text; set by settle
}

// add notes what a value needs.
func (l *timeLeaf) add(v any) {
	switch v := v.(type) {
	case value.DateTime:
		l.zoned = l.zoned || v.Zoned
		l.local = l.local || !v.Zoned
		l.nanos = l.nanos || v.Time.Nanosecond()%1000 != 0
		l.wide = l.wide || outsideNanos(v.Time)
	case value.Time:
		l.nanos = l.nanos || v%1000 != 0
	}
}

// outsideNanos reports whether a time is not a number of nanoseconds since 1970 that an
// int64 can hold.
func outsideNanos(t time.Time) bool { return t.Year() < 1678 || t.Year() > 2261 }

// settle decides how the column is written.
func (l *timeLeaf) settle() { l.isText = l.zoned && l.local || l.nanos && l.wide }

func (l *timeLeaf) schema() parquet.Node {
	unit := parquet.Microsecond
	if l.nanos {
		unit = parquet.Nanosecond
	}
	switch {
	case l.isText:
		return parquet.String()
	case l.day:
		return parquet.TimeAdjusted(unit, false)
	}
	return parquet.TimestampAdjusted(unit, !l.local)
}

// parquetValue returns a value of the column. It fails if the values before it decided on
// a column that cannot hold it.
func (l *timeLeaf) parquetValue(v any) (parquet.Value, error) {
	if l.isText {
		return parquet.ByteArrayValue([]byte(value.Text(v))), nil
	}
	unit := int64(time.Microsecond)
	if l.nanos {
		unit = 1
	}
	if v, ok := v.(value.Time); ok {
		if int64(v)%unit != 0 {
			return parquet.Value{}, l.unfit(v, "microseconds, as those of the values before it")
		}
		return parquet.Int64Value(int64(v) / unit), nil
	}
	at := v.(value.DateTime) // convertTime returns nothing else
	switch {
	case at.Zoned && l.local:
		return parquet.Value{}, l.unfit(at, "times without a time zone, as the values before it")
	case !at.Zoned && !l.local:
		return parquet.Value{}, l.unfit(at, "times with a time zone, as the values before it")
	case int64(at.Time.Nanosecond())%unit != 0:
		return parquet.Value{}, l.unfit(at, "microseconds, as those of the values before it")
	case l.nanos && outsideNanos(at.Time):
		return parquet.Value{}, l.unfit(at, "nanoseconds, which end at the years 1678 and 2261")
	case l.nanos:
		return parquet.Int64Value(at.Time.UnixNano()), nil
	}
	return parquet.Int64Value(at.Time.UnixMicro()), nil
}

func (l *timeLeaf) unfit(v any, holds string) error {
	return fmt.Errorf("%s does not fit the Parquet column, which has %s; declare it as text", value.Text(v), holds)
}

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
