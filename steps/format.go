package steps

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/prompttemplate"
	"github.com/qtype-dev/qtype/spec/value"
)

// format is a placeholder's conversion and format specification.
type format struct{ prompttemplate.Format }

// apply formats a value.
func (f *format) apply(v any) (string, error) {
	if f.Conversion != "" {
		return f.text(convert(v, f.Conversion))
	}
	switch v := v.(type) {
	case int64:
		if f.IsPlain() {
			return strconv.FormatInt(v, 10), nil
		}
		return f.integer(v)
	case float64:
		return f.float(v)
	case bool:
		if f.IsNumeric() {
			return f.integer(map[bool]int64{true: 1}[v])
		}
	}
	return f.text(value.Text(v))
}

// text pads and truncates a text.
func (f *format) text(s string) (string, error) {
	if f.IsNumeric() {
		return "", fmt.Errorf("the format needs a number, not %s", value.Describe(s))
	}
	if f.Precision >= 0 {
		if runes := []rune(s); len(runes) > f.Precision {
			s = string(runes[:f.Precision])
		}
	}
	align := cmp.Or(f.Align, '<')
	if align == '=' {
		if f.Fill != "0" {
			return "", fmt.Errorf("the alignment = needs a number, not %s", value.Describe(s))
		}
		align = '<' // 05 pads a text on the right
	}
	return f.pad("", s, align), nil
}

// pad fills up to the width. With the alignment = the sign is before the fill.
func (f *format) pad(sign, s string, align byte) string {
	missing := f.Width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return sign + s
	}
	fill := f.Fill
	if fill == "" {
		fill = " "
	}
	left := 0
	switch align {
	case '>', '=':
		left = missing
	case '^':
		left = missing / 2
	}
	before, after := strings.Repeat(fill, left), strings.Repeat(fill, missing-left)
	if align == '=' {
		return sign + before + s + after
	}
	return before + sign + s + after
}

// pythonQuote quotes a text as Python's repr does: in single quotes, unless it
// contains single and no double quotes.
func pythonQuote(s string, ascii bool) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || r > ' ' && unicode.IsPrint(r) && (!ascii || r < 0x7f):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

// number pads the digits of a number, with separators and sign.
func (f *format) number(negative bool, prefix, digits string) string {
	sign := prefix
	switch {
	case negative:
		sign = "-" + prefix
	case f.Sign == '+' || f.Sign == ' ':
		sign = string(f.Sign) + prefix
	}
	whole, rest := splitWhole(digits)
	if f.Grouping != 0 {
		if f.Align == '=' && f.Fill == "0" {
			// zeros that fill the width get separators too
			for len(sign)+groupedLength(whole, f.groupSize())+len(rest) < f.Width {
				whole = "0" + whole
			}
		}
		whole = group(whole, f.Grouping, f.groupSize())
	}
	return f.pad(sign, whole+rest, cmp.Or(f.Align, '>'))
}

// splitWhole splits the digits before the point from the rest.
func splitWhole(s string) (whole, rest string) {
	if i := strings.IndexAny(s, ".e%"); i >= 0 && isDigits(s[:i]) {
		return s[:i], s[i:]
	}
	return s, ""
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// groupSize returns the number of digits between two separators.
func (f *format) groupSize() int {
	if strings.IndexByte("boxX", f.Verb) >= 0 && f.Verb != 0 {
		return 4
	}
	return 3
}

// group inserts separators between digits.
func group(digits string, sep byte, size int) string {
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// groupedLength returns the length of group's result.
func groupedLength(digits string, size int) int { return len(digits) + (len(digits)-1)/size }

// integer formats a whole number.
func (f *format) integer(n int64) (string, error) {
	base, prefix := 10, ""
	switch f.Verb {
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		return f.float(float64(n))
	case 's':
		return "", errors.New("the format s needs a text, not a number")
	case 'c':
		if n < 0 || n > unicode.MaxRune {
			return "", fmt.Errorf("%d is not a character", n)
		}
		return f.pad("", string(rune(n)), '<'), nil
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0x"
	}
	if f.Precision >= 0 {
		return "", errors.New("a whole number takes no precision")
	}
	if !f.Alternate {
		prefix = ""
	}
	digits := strings.TrimPrefix(strconv.FormatInt(n, base), "-")
	if f.Verb == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return f.number(n < 0, prefix, digits), nil
}

// float formats a floating point number.
func (f *format) float(x float64) (string, error) {
	if f.Verb != 0 && strings.IndexByte("sdboxXc", f.Verb) >= 0 {
		return "", fmt.Errorf("the format %c cannot format the float %s", f.Verb, value.Text(x))
	}
	abs := math.Abs(x)
	digits := f.floatDigits(abs)
	if f.Verb == 'E' || f.Verb == 'F' || f.Verb == 'G' {
		digits = strings.ToUpper(digits)
	}
	return f.number(math.Signbit(x) && !math.IsNaN(x), "", digits), nil
}

// floatDigits formats a number that is not negative, without padding.
func (f *format) floatDigits(x float64) string {
	p := f.Precision
	if p < 0 {
		p = 6 // Python's default
	}
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 0):
		return "inf"
	}
	switch f.Verb {
	case 'e', 'E':
		return strconv.FormatFloat(x, 'e', p, 64)
	case 'f', 'F':
		return strconv.FormatFloat(x, 'f', p, 64)
	case '%':
		return strconv.FormatFloat(x*100, 'f', p, 64) + "%"
	case 'g', 'G', 'n':
		return general(x, max(p, 1), f.Alternate, false)
	}
	if f.Precision < 0 {
		return value.Text(x)
	}
	return general(x, max(p, 1), f.Alternate, true)
}

// general implements Python's type g: p significant digits, an exponent for very
// large and small numbers. point adds ".0" to what would look like a whole number.
func general(x float64, p int, keepZeros, point bool) string {
	e := strconv.FormatFloat(x, 'e', p-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	exp, err := strconv.Atoi(exponent)
	if err != nil {
		return e
	}
	limit := p
	if point {
		limit--
	}
	scientific := exp < -4 || exp >= limit
	s := mantissa
	if !scientific {
		s = strconv.FormatFloat(x, 'f', max(p-1-exp, 0), 64)
	}
	if !keepZeros && strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	switch {
	case scientific:
		return s + "e" + exponent
	case point && !strings.Contains(s, "."):
		return s + ".0"
	}
	return s
}
