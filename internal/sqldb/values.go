package sqldb

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec/value"
)

// argument is a run-time value as a driver takes it. Lists go to PostgreSQL as
// arrays; elsewhere lists and records are JSON text.
func argument(d sqlquery.Dialect, v any) any {
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
		return clock(d, v)
	case []any:
		if d == sqlquery.PostgreSQL {
			return array(v)
		}
		return string(value.JSON(v))
	case *value.Record:
		return string(value.JSON(v))
	}
	return value.Text(v) // dates and times of day in ISO form, a ChatMessage as its text
}

// number is a whole number that PostgreSQL may also want as a text.
type number struct {
	pgtype.Int8
	text string
}

// TextValue is the number's digits.
func (n number) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: n.text, Valid: true}, nil
}

// clock is a date and time as a database compares it: with a space where
// others than PostgreSQL keep times as texts, and those without an offset.
func clock(d sqlquery.Dialect, v value.DateTime) any {
	const plain = "2006-01-02 15:04:05.999999"
	switch {
	case d == sqlquery.PostgreSQL:
		return v.String()
	case v.Zoned:
		return v.Time.UTC().Format(plain)
	}
	return v.Time.Format(plain)
}

// array is a list as PostgreSQL takes it.
func array(items []any) any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = argument(sqlquery.PostgreSQL, item)
	}
	return out
}

// maker makes run-time values of what a driver gives for a column of a type.
func maker(d sqlquery.Dialect, typ string) func(any) any {
	typ = strings.ToUpper(typ)
	switch d {
	case sqlquery.PostgreSQL:
		return postgresValue(typ)
	case sqlquery.MySQL:
		return mysqlValue(typ)
	}
	return func(v any) any {
		if t, ok := v.(time.Time); ok {
			return moment(t, typ == "DATE", t.Location() != time.UTC)
		}
		return v
	}
}

// moment is a date, or a date and time in UTC or without a zone.
func moment(t time.Time, isDate, zoned bool) any {
	at := value.DateTime{Time: t.UTC(), Zoned: zoned}
	if isDate {
		return at.Date()
	}
	return at
}

// postgresValue makes values of a PostgreSQL column; an array becomes a list of
// its elements as texts, which the declared type makes of what they are.
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
			return moment(v, typ == "DATE", typ == "TIMESTAMPTZ")
		case []byte:
			if typ != "BYTEA" {
				return string(v) // JSON
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

// mysqlValue makes values of a MySQL column, whose texts and numbers with a
// point come as bytes.
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
		}
		return string(b)
	}
}
