package sqldb

import (
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/spec/value"
)

// TextArgument converts a run-time value for drivers that accept Go's values. Dates and times are text
// in ISO form, without an offset, as such databases store them; lists and records are JSON.
func TextArgument(v any) any {
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

// sqliteValue converts values of an SQLite column.
func sqliteValue(typ string) func(any) any {
	return func(v any) any {
		if t, ok := v.(time.Time); ok {
			return TimeValue(t, typ == "DATE", t.Location() != time.UTC)
		}
		return v
	}
}

// TimeValue returns a date, or a date and time in UTC or without a zone. A time outside of
// the years 1 to 9999 is a text in ISO 8601, which no date can be.
func TimeValue(t time.Time, isDate, zoned bool) any {
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
