package value

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Date is a calendar date.
type Date struct {
	Year  int        // 1 to 9999
	Month time.Month // the month
	Day   int        // day of the month, from 1
}

// String returns YYYY-MM-DD.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// MarshalText returns String, for JSON.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// DateTime is an instant, or a local time in an unknown time zone.
type DateTime struct {
	Time  time.Time // the instant; in UTC if the zone is unknown
	Zoned bool      // whether the zone is known
}

// String returns the ISO 8601 form, without an offset if the zone is unknown.
func (d DateTime) String() string {
	if d.Zoned {
		return d.Time.Format(time.RFC3339Nano)
	}
	return d.Time.Format("2006-01-02T15:04:05.999999999")
}

// MarshalText returns String, for JSON.
func (d DateTime) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Date returns the day of the instant in its zone.
func (d DateTime) Date() Date {
	y, m, day := d.Time.Date()
	return Date{y, m, day}
}

// midnight reports whether the instant is the start of a day.
func (d DateTime) midnight() bool {
	h, m, s := d.Time.Clock()
	return h == 0 && m == 0 && s == 0 && d.Time.Nanosecond() == 0
}

// Time is a time of day.
type Time time.Duration // since midnight, below 24 hours

// String returns HH:MM:SS, with a fraction if there is one.
func (t Time) String() string {
	return time.Time{}.Add(time.Duration(t)).Format("15:04:05.999999999")
}

// MarshalText returns String, for JSON.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

const day = 24 * time.Hour

// The layouts of ISO 8601. time.Parse accepts a fraction of seconds without a
// layout.
func zonedLayouts() []string {
	return []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07"}
}

func localLayouts() []string {
	return []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}
}

// ParseDateTime parses an ISO 8601 date, or date and time, separated by T or a
// space.
func ParseDateTime(s string) (DateTime, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	if len(s) > 10 && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	for _, layout := range localLayouts() {
		if t, err := time.Parse(layout, s); err == nil {
			return DateTime{Time: t}, inRange(t)
		}
	}
	for _, layout := range zonedLayouts() {
		if t, err := time.Parse(layout, s); err == nil {
			_, offset := t.Zone()
			return zoned(t), inRange(t) && (time.Duration(offset)*time.Second).Abs() < day // the package time accepts +24:00
		}
	}
	return DateTime{}, false
}

// zoned keeps the offset of a time and drops its location, so that the value does
// not depend on the local time zone.
func zoned(t time.Time) DateTime {
	_, offset := t.Zone()
	if offset == 0 {
		return DateTime{Time: t.UTC(), Zoned: true}
	}
	return DateTime{Time: t.In(time.FixedZone("", offset)), Zoned: true}
}

// inRange limits years to four digits, so that the text of a value can be parsed.
func inRange(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// parseTime parses HH:MM[:SS[.f]].
func parseTime(s string) (Time, bool) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			h, m, sec := t.Clock()
			return Time(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute +
				time.Duration(sec)*time.Second + time.Duration(t.Nanosecond())), true
		}
	}
	return 0, false
}

// isCompactDate reports whether a text has as many digits as a year, a month, a date, or a date and time, without
// separators: 2024, 202402, 20240229, 202402291200. As seconds since 1970 it would be another day.
func isCompactDate(s string) bool {
	s = strings.TrimSpace(s)
	switch len(s) {
	case len("2006"), len("200601"), len("20060102"), len("200601021504"):
		return strings.Trim(s, "0123456789") == ""
	}
	return false
}

// unix returns the instant at a number of seconds since 1970.
func unix(seconds float64) (DateTime, bool) {
	// The years 1 to 9999 in seconds.
	if math.IsNaN(seconds) || seconds < -62135596800 || seconds > 253402300799 {
		return DateTime{}, false
	}
	whole, frac := math.Modf(seconds)
	// A float64 of current times has a precision of microseconds.
	return DateTime{Time: time.Unix(int64(whole), int64(math.Round(frac*1e6))*1000).UTC(), Zoned: true}, true
}
