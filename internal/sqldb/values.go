package sqldb

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec/value"
)

// argument converts a run-time value for the driver. Lists are arrays for
// PostgreSQL; for others, lists and records are JSON text.
func argument(d sqlquery.Dialect, v any) any {
	if d == sqlquery.Athena {
		return literal(v)
	}
	switch v := v.(type) {
	case nil, string, bool, []byte:
		return v
	case int64:
		if d == sqlquery.PostgreSQL {
			return number{pgtype.Int8{Int64: v, Valid: true}, value.Text(v)}
		}
		return v
	case float64:
		return v
	case value.DateTime:
		return timeArgument(d, v)
	case []any:
		if d == sqlquery.PostgreSQL {
			return array(v)
		}
		return string(value.JSON(v))
	case *value.Record:
		return string(value.JSON(v))
	}
	return value.Text(v) // dates and times in ISO form, a ChatMessage as its text
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

// timeArgument converts a date and time for comparison in the database. Those other
// than PostgreSQL may store times as text, with a space and without an offset.
func timeArgument(d sqlquery.Dialect, v value.DateTime) any {
	const plain = "2006-01-02 15:04:05.999999"
	switch {
	case d == sqlquery.PostgreSQL:
		return v.String()
	case v.Zoned:
		return v.Time.UTC().Format(plain)
	}
	return v.Time.Format(plain)
}

// array converts a list for PostgreSQL.
func array(items []any) any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = argument(sqlquery.PostgreSQL, item)
	}
	return out
}

// converter returns a function that converts a driver's value of a column type.
func converter(d sqlquery.Dialect, typ string) func(any) any {
	typ = strings.ToUpper(typ)
	switch d {
	case sqlquery.PostgreSQL:
		return postgresValue(typ)
	case sqlquery.MySQL:
		return mysqlValue(typ)
	case sqlquery.Athena:
		return athenaValue(typ)
	}
	return func(v any) any {
		if t, ok := v.(time.Time); ok {
			return timeValue(t, typ == "DATE", t.Location() != time.UTC)
		}
		return v
	}
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
				return value.FromGo(f)
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
