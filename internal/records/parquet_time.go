package records

import (
	"fmt"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/qtype-dev/qtype/spec/value"
)

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
