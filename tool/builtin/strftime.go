package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec/value"
)

// format writes a moment by the directives of strftime, in English.
func format(a arguments) (any, error) {
	at, layout := a.moment("timestamp"), a.text("format_string")
	var out strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			out.WriteByte(layout[i])
			continue
		}
		start := i
		i++
		flag := byte(0)
		if i < len(layout) && strings.IndexByte("-_0^", layout[i]) >= 0 {
			flag = layout[i]
			i++
		}
		colon := flag == 0 && i+1 < len(layout) && layout[i] == ':' && layout[i+1] == 'z'
		if colon {
			i++
		}
		if i == len(layout) {
			return nil, fmt.Errorf("format_string ends with %q; %%%% stands for a percent sign", layout[start:])
		}
		written, ok := directive(at, layout[i])
		if colon {
			written.text = offset(at, ":")
		}
		if !ok {
			return nil, fmt.Errorf("format_string has %q, which is not a directive of strftime", layout[start:i+1])
		}
		out.WriteString(written.with(flag))
	}
	return out.String(), nil
}

// part is what a directive writes: a text, or a number with its width.
type part struct {
	text  string
	n     int
	width int  // 0 for a text
	pad   byte // what fills the width; 0 is a zero
}

// with writes the part as a flag of glibc's wants it: - without filling, _ filled
// with blanks, 0 with zeros, ^ in capitals.
func (p part) with(flag byte) string {
	switch {
	case p.width == 0 && flag == '^':
		return strings.ToUpper(p.text)
	case p.width == 0:
		return p.text
	}
	text := strconv.Itoa(p.n)
	fill := p.pad
	switch {
	case flag == '-':
		return text
	case flag == '_':
		fill = ' '
	case flag == '0' || fill == 0:
		fill = '0'
	}
	return strings.Repeat(string(fill), max(0, p.width-len(text))) + text
}

// directive is what one letter stands for; false for a letter that stands for nothing.
func directive(d value.DateTime, letter byte) (part, bool) {
	if p, ok := clock(d, letter); ok {
		return p, true
	}
	if p, ok := calendar(d.Time, letter); ok {
		return p, true
	}
	t := d.Time
	switch letter {
	case 'z':
		return part{text: offset(d, "")}, true
	case 'Z':
		return part{text: zone(d)}, true
	case 's':
		return part{text: strconv.FormatInt(t.Unix(), 10)}, true
	case 'c':
		return part{text: t.Format("Mon Jan _2 15:04:05 2006")}, true
	case 'x', 'D':
		return part{text: t.Format("01/02/06")}, true
	case 'X', 'T':
		return part{text: t.Format("15:04:05")}, true
	case 'F':
		return part{text: t.Format("2006-01-02")}, true
	case 'R':
		return part{text: t.Format("15:04")}, true
	case 'r':
		return part{text: t.Format("03:04:05 PM")}, true
	case 'n':
		return part{text: "\n"}, true
	case 't':
		return part{text: "\t"}, true
	case '%':
		return part{text: "%"}, true
	}
	return part{}, false
}

// clock writes what depends on the time of day.
func clock(d value.DateTime, letter byte) (part, bool) {
	t := d.Time
	twelve := (t.Hour()+11)%12 + 1
	switch letter {
	case 'H':
		return part{n: t.Hour(), width: 2}, true
	case 'k':
		return part{n: t.Hour(), width: 2, pad: ' '}, true
	case 'I':
		return part{n: twelve, width: 2}, true
	case 'l':
		return part{n: twelve, width: 2, pad: ' '}, true
	case 'M':
		return part{n: t.Minute(), width: 2}, true
	case 'S':
		return part{n: t.Second(), width: 2}, true
	case 'f':
		return part{n: t.Nanosecond() / 1000, width: 6}, true
	case 'p':
		return part{text: t.Format("PM")}, true
	case 'P':
		return part{text: t.Format("pm")}, true
	}
	return part{}, false
}

// calendar writes what depends on the day.
func calendar(t time.Time, letter byte) (part, bool) {
	isoYear, isoWeek := t.ISOWeek()
	weekday := int(t.Weekday()) // 0 is Sunday
	switch letter {
	case 'a':
		return part{text: t.Format("Mon")}, true
	case 'A':
		return part{text: t.Format("Monday")}, true
	case 'b', 'h':
		return part{text: t.Format("Jan")}, true
	case 'B':
		return part{text: t.Format("January")}, true
	case 'd':
		return part{n: t.Day(), width: 2}, true
	case 'e':
		return part{n: t.Day(), width: 2, pad: ' '}, true
	case 'm':
		return part{n: int(t.Month()), width: 2}, true
	case 'Y':
		return part{n: t.Year(), width: 4}, true
	case 'y':
		return part{n: t.Year() % 100, width: 2}, true
	case 'C':
		return part{n: t.Year() / 100, width: 2}, true
	case 'j':
		return part{n: t.YearDay(), width: 3}, true
	case 'w':
		return part{n: weekday, width: 1}, true
	case 'u':
		return part{n: (weekday+6)%7 + 1, width: 1}, true
	case 'U': // weeks that begin on Sunday; days before the first one are week 0
		return part{n: (t.YearDay() + 6 - weekday) / 7, width: 2}, true
	case 'W': // weeks that begin on Monday
		return part{n: (t.YearDay() + 6 - (weekday+6)%7) / 7, width: 2}, true
	case 'V':
		return part{n: isoWeek, width: 2}, true
	case 'G':
		return part{n: isoYear, width: 4}, true
	case 'g':
		return part{n: isoYear % 100, width: 2}, true
	}
	return part{}, false
}

// offset is the offset of a moment's zone as +0200, with a separator between
// hours and minutes; nothing where the zone is not known.
func offset(d value.DateTime, separator string) string {
	if !d.Zoned {
		return ""
	}
	return d.Time.Format("-07" + separator + "00")
}

// zone is the name that Python gives a zone that is known by its offset only.
func zone(d value.DateTime) string {
	switch _, seconds := d.Time.Zone(); {
	case !d.Zoned:
		return ""
	case seconds == 0:
		return "UTC"
	}
	return "UTC" + d.Time.Format("-07:00")
}
