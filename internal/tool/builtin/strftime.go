package builtin

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-strftime"

	"github.com/qtype-dev/qtype/spec/value"
)

// Directives of strftime that Python has. The library knows further ones, which
// Python rejects.
const (
	numericDirectives = "CdefgGHIjklmMSuUVwWyY"
	textDirectives    = "aAbBcDFhnpPrRstTxXZz%"
)

// format writes a time by the directives of Python's strftime, in English.
// go-strftime formats single directives. What it lacks is added here: the flags of
// glibc (- _ 0 ^), the zones of times without one, %n and %t, and an error for an
// unknown directive.
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
		separator := ""
		if flag == 0 && strings.HasPrefix(layout[i:], ":z") {
			separator = ":"
			i++
		}
		if i == len(layout) {
			return nil, fmt.Errorf("format_string ends with %q; write %%%% for a percent sign", layout[start:])
		}
		switch letter := layout[i]; {
		case letter == 'z':
			out.WriteString(offset(at, separator))
		case strings.IndexByte(numericDirectives, letter) >= 0:
			out.WriteString(pad(strftime.Format("%"+string(letter), at.Time), flag))
		case strings.IndexByte(textDirectives, letter) >= 0:
			text := textDirective(at, letter)
			if flag == '^' {
				text = strings.ToUpper(text)
			}
			out.WriteString(text)
		default:
			return nil, fmt.Errorf("format_string has %q, which is not a directive of strftime", layout[start:i+1])
		}
	}
	return out.String(), nil
}

// pad applies a flag to a number that is filled to its width: - removes the fill,
// _ fills with spaces, 0 with zeros.
func pad(number string, flag byte) string {
	bare := strings.TrimLeft(number[:len(number)-1], "0 ") + number[len(number)-1:]
	fill := len(number) - len(bare)
	switch flag {
	case '-':
		return bare
	case '_':
		return strings.Repeat(" ", fill) + bare
	case '0':
		return strings.Repeat("0", fill) + bare
	}
	return number
}

func textDirective(at value.DateTime, letter byte) string {
	switch letter {
	case 'Z':
		return zone(at)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	}
	return strftime.Format("%"+string(letter), at.Time)
}

// offset returns the zone's offset as +0200, with a separator between hours and
// minutes; empty where the zone is not known.
func offset(d value.DateTime, separator string) string {
	if !d.Zoned {
		return ""
	}
	return d.Time.Format("-07" + separator + "00")
}

// zone returns Python's name of a zone with a known offset only.
func zone(d value.DateTime) string {
	switch _, seconds := d.Time.Zone(); {
	case !d.Zoned:
		return ""
	case seconds == 0:
		return "UTC"
	}
	return "UTC" + d.Time.Format("-07:00")
}
