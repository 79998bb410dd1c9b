package steps

import (
	"cmp"
	"fmt"
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
