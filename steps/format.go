package steps

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// format is a placeholder's conversion and format specification, with the syntax of
// Python: [[fill]align][sign][#][0][width][grouping][.precision][type].
type format struct {
	conversion string // "", !s, !r or !a
	fill       string // one character; empty for a space
	align      byte   // one of <>^=, 0 for the default of the value's type
	sign       byte   // one of + - and space, 0 for -
	alternate  bool   // #: 0x before hexadecimal numbers, always a decimal point
	width      int    // minimum number of characters
	grouping   byte   // , or _ or 0
	precision  int    // -1 for none
	verb       byte   // one of sdboxXceEfFgGn%, 0 for none
}

// maxWidth limits width and precision, so that a template cannot request gigabytes.
const maxWidth = 10000

var errSpec = errors.New("the format does not have the form [[fill]align][sign][#][0][width][,][.precision][type]")

// parseFormat parses the part of a placeholder after the name.
func parseFormat(conversion, s string) (*format, error) {
	f := &format{conversion: conversion, precision: -1}
	switch conversion {
	case "", "!s", "!r", "!a":
	default:
		return nil, fmt.Errorf("the conversion %s is not one of !s, !r, !a", brief(conversion))
	}
	s = f.parseAlign(s)
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		f.alternate, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		f.fill = cmp.Or(f.fill, "0")
		f.align = cmp.Or(f.align, '=')
	}
	var err error
	if s, err = cutNumber(s, &f.width); err != nil {
		return nil, err
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.grouping, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if len(s) < 2 || s[1] < '0' || s[1] > '9' {
			return nil, errors.New(`missing precision after "."`)
		}
		if s, err = cutNumber(s[1:], &f.precision); err != nil {
			return nil, err
		}
	}
	return f, f.parseVerb(s)
}

// parseAlign cuts the fill and the alignment off the front.
func (f *format) parseAlign(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	if n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		f.fill, f.align = s[:n], s[n]
		return s[n+1:]
	}
	if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		f.align = s[0]
		return s[1:]
	}
	return s
}

// cutNumber cuts digits off the front.
func cutNumber(s string, to *int) (string, error) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 0 {
		return s, nil
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil || v > maxWidth {
		return "", fmt.Errorf("%s exceeds the maximum of %d", brief(s[:n]), maxWidth)
	}
	*to = v
	return s[n:], nil
}

// parseVerb parses the type, the last part of a specification.
func (f *format) parseVerb(s string) error {
	switch {
	case s == "":
		return nil
	case len(s) > 1 || strings.IndexByte("sdboxXceEfFgGn%", s[0]) < 0:
		return errSpec
	}
	f.verb = s[0]
	if f.conversion != "" && f.numeric() {
		return fmt.Errorf("%s converts to text, which the type %c cannot format", f.conversion, f.verb)
	}
	return nil
}

// numeric reports whether the format applies to numbers only.
func (f *format) numeric() bool {
	return f.verb != 0 && f.verb != 's' || f.sign != 0 || f.grouping != 0
}

// plain reports whether the placeholder has no conversion and no format.
func (f *format) plain() bool { return *f == format{precision: -1} }

// checkType reports a format that would fail on every row: a number format for text.
func (f *format) checkType(t spec.Type) error {
	number := t.Is("int") || t.Is("float") || t.Is("boolean")
	switch {
	case f.numeric() && t.Is("text"):
		return fmt.Errorf("the format needs a number, but the input is %s", t)
	case f.verb == 's' && f.conversion == "" && number && !t.Is("boolean"):
		return fmt.Errorf("the format s needs a text, but the input is %s", t)
	case f.precision >= 0 && t.Is("int") && (f.verb == 0 || strings.IndexByte("dboxXcn", f.verb) >= 0):
		return errors.New("a whole number takes no precision")
	case t.Is("float") && f.verb != 0 && strings.IndexByte("dboxXc", f.verb) >= 0:
		return fmt.Errorf("the format %c needs a whole number, but the input is float", f.verb)
	}
	return nil
}

// apply formats a value.
func (f *format) apply(v any) (string, error) {
	if f.conversion != "" {
		return f.text(convert(v, f.conversion))
	}
	switch v := v.(type) {
	case int64:
		if f.plain() {
			return strconv.FormatInt(v, 10), nil
		}
		return f.integer(v)
	case float64:
		return f.float(v)
	case bool:
		if f.numeric() {
			return f.integer(map[bool]int64{true: 1}[v])
		}
	}
	return f.text(value.Text(v))
}

// text pads and truncates a text.
func (f *format) text(s string) (string, error) {
	if f.numeric() {
		return "", fmt.Errorf("the format needs a number, not %s", value.Describe(s))
	}
	if f.precision >= 0 {
		if runes := []rune(s); len(runes) > f.precision {
			s = string(runes[:f.precision])
		}
	}
	align := cmp.Or(f.align, '<')
	if align == '=' {
		if f.fill != "0" {
			return "", fmt.Errorf("the alignment = needs a number, not %s", value.Describe(s))
		}
		align = '<' // 05 pads a text on the right
	}
	return f.pad("", s, align), nil
}

// pad fills up to the width. With the alignment = the sign is before the fill.
func (f *format) pad(sign, s string, align byte) string {
	missing := f.width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return sign + s
	}
	fill := f.fill
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
