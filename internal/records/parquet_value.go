package records

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/qtype-dev/qtype/spec/value"
)

// leafValue returns a leaf's value as a Record has it. Byte strings are copied: the
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
