package sqldb

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/qtype-dev/qtype/spec/value"
)

// textArgument converts a run-time value for drivers that accept Go's values. Dates and times are text
// in ISO form, without an offset, as such databases store them; lists and records are JSON.
func textArgument(v any) any {
	switch v := v.(type) {
	case nil, string, bool, []byte, int64, float64:
		return v
	case value.DateTime:
		const plain = "2006-01-02 15:04:05.999999"
		if v.Zoned {
			return v.Time.UTC().Format(plain)
		}
		return v.Time.Format(plain)
	case []any, *value.Record:
		return string(value.JSON(v))
	}
	return value.Text(v) // a ChatMessage is its text
}

// postgresArgument converts a run-time value for PostgreSQL, where lists are arrays.
func postgresArgument(v any) any {
	switch v := v.(type) {
	case int64:
		return number{pgtype.Int8{Int64: v, Valid: true}, value.Text(v)}
	case value.DateTime:
		return v.String()
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = postgresArgument(item)
		}
		return items
	}
	return textArgument(v)
}

// number is a whole number that PostgreSQL may also use as text.
type number struct {
	pgtype.Int8
	text string
}

// TextValue returns the digits.
func (n number) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: n.text, Valid: true}, nil
}

// sqliteValue converts values of an SQLite column.
func sqliteValue(typ string) func(any) any {
	return func(v any) any {
		if t, ok := v.(time.Time); ok {
			return timeValue(t, typ == "DATE", t.Location() != time.UTC)
		}
		return v
	}
}

// clock returns a time of day in ISO form, without zeros at its end.
func clock(t time.Time) string {
	return strings.TrimRight(strings.TrimRight(t.Format("15:04:05.000000000"), "0"), ".")
}

// timeValue returns a date, or a date and time in UTC or without a zone. A time outside of
// the years 1 to 9999 is a text in ISO 8601, which no date can be.
func timeValue(t time.Time, isDate, zoned bool) any {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		layout := "-01-02T15:04:05.999999999"
		if isDate {
			layout = "-01-02"
		}
		return fmt.Sprintf("%+05d", year) + t.UTC().Format(layout)
	}
	at := value.DateTime{Time: t.UTC(), Zoned: zoned}
	if isDate {
		return at.Date()
	}
	return at
}

// timeColumn converts dates and times of a column of a type; zoned reports whether it has times with a zone.
func timeColumn(typ string, zoned bool) func(any) any {
	return func(v any) any {
		t, ok := v.(time.Time)
		switch {
		case !ok:
			return v
		case typ == "TIME":
			return clock(t)
		}
		return timeValue(t, typ == "DATE", zoned)
	}
}

// postgresValue converts values of a PostgreSQL column. The elements of an array are
// texts, which the declared type converts.
func postgresValue(typ string) func(any) any {
	if element, ok := strings.CutPrefix(typ, "_"); ok && element != "" {
		types := pgtype.NewMap()
		array, known := types.TypeForName(strings.ToLower(typ))
		return func(v any) any {
			text, isText := v.(string)
			var items []*string
			if !known || !isText || types.Scan(array.OID, pgtype.TextFormatCode, []byte(text), &items) != nil {
				return v
			}
			return texts(items)
		}
	}
	return func(v any) any {
		switch v := v.(type) {
		case time.Time:
			return timeValue(v, typ == "DATE", typ == "TIMESTAMPTZ")
		case []byte:
			if typ != "BYTEA" {
				return string(v) // JSON
			}
		case string:
			if typ == "NUMERIC" {
				return value.Decimal(v)
			}
		case float64:
			if typ == "FLOAT4" {
				return value.FromFloat32(float32(v))
			}
		}
		return v
	}
}

func texts(items []*string) []any {
	out := make([]any, len(items))
	for i, item := range items {
		if item != nil {
			out[i] = *item
		}
	}
	return out
}

// mysqlValue converts values of a MySQL column. The driver returns texts and decimals
// as bytes.
func mysqlValue(typ string) func(any) any {
	isBytes := strings.HasSuffix(typ, "BLOB") || strings.HasSuffix(typ, "BINARY") || typ == "GEOMETRY"
	return func(v any) any {
		b, ok := v.([]byte)
		switch {
		case !ok:
			if f, isFloat := v.(float32); isFloat {
				return value.FromFloat32(f)
			}
			return v
		case typ == "BIT" && len(b) <= 8:
			var n uint64
			for _, c := range b {
				n = n<<8 | uint64(c)
			}
			return value.FromGo(n)
		case isBytes || !utf8.Valid(b):
			return b
		case typ == "DECIMAL":
			return value.Decimal(b)
		}
		return string(b)
	}
}
