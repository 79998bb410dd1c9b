package prompttemplate

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// Format is a placeholder's conversion and format specification, with the syntax of
// Python: [[fill]align][sign][#][0][width][grouping][.precision][type].
type Format struct {
	Conversion string // "", !s, !r or !a
	Fill       string // one character; empty for a space
	Align      byte   // one of <>^=, 0 for the default of the value's type
	Sign       byte   // one of + - and space, 0 for -
	Alternate  bool   // #: 0x before hexadecimal numbers, always a decimal point
	Width      int    // minimum number of characters
	Grouping   byte   // , or _ or 0
	Precision  int    // -1 for none
	Verb       byte   // one of sdboxXceEfFgGn%, 0 for none
}

// maxWidth limits width and precision, so that a template cannot request gigabytes.
const maxWidth = 10000

var errSpec = errors.New("the format does not have the form [[fill]align][sign][#][0][width][,][.precision][type]")

// ParseFormat parses the part of a placeholder after the name.
func ParseFormat(conversion, s string) (*Format, error) {
	f := &Format{Conversion: conversion, Precision: -1}
	switch conversion {
	case "", "!s", "!r", "!a":
	default:
		return nil, fmt.Errorf("the conversion %s is not one of !s, !r, !a", Brief(conversion))
	}
	s = f.parseAlign(s)
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.Sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		f.Alternate, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		f.Fill = cmp.Or(f.Fill, "0")
		f.Align = cmp.Or(f.Align, '=')
	}
	var err error
	if s, err = cutNumber(s, &f.Width); err != nil {
		return nil, err
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.Grouping, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if len(s) < 2 || s[1] < '0' || s[1] > '9' {
			return nil, errors.New(`missing precision after "."`)
		}
		if s, err = cutNumber(s[1:], &f.Precision); err != nil {
			return nil, err
		}
	}
	return f, f.parseVerb(s)
}

// parseAlign cuts the fill and the alignment off the front.
func (f *Format) parseAlign(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	if n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		f.Fill, f.Align = s[:n], s[n]
		return s[n+1:]
	}
	if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		f.Align = s[0]
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
		return "", fmt.Errorf("%s exceeds the maximum of %d", Brief(s[:n]), maxWidth)
	}
	*to = v
	return s[n:], nil
}

// parseVerb parses the type, the last part of a specification.
func (f *Format) parseVerb(s string) error {
	switch {
	case s == "":
		return nil
	case len(s) > 1 || strings.IndexByte("sdboxXceEfFgGn%", s[0]) < 0:
		return errSpec
	}
	f.Verb = s[0]
	if f.Conversion != "" && f.IsNumeric() {
		return fmt.Errorf("%s converts to text, which the type %c cannot format", f.Conversion, f.Verb)
	}
	return nil
}

// IsNumeric reports whether the format applies to numbers only.
func (f *Format) IsNumeric() bool {
	return f.Verb != 0 && f.Verb != 's' || f.Sign != 0 || f.Grouping != 0
}

// IsPlain reports whether the placeholder has no conversion and no format.
func (f *Format) IsPlain() bool { return *f == Format{Precision: -1} }

// CheckType reports a format that would fail on every row: a number format for text.
func (f *Format) CheckType(t spec.Type) error {
	number := t.Is("int") || t.Is("float") || t.Is("boolean")
	switch {
	case f.IsNumeric() && t.Is("text"):
		return fmt.Errorf("the format needs a number, but the input is %s", t)
	case f.Verb == 's' && f.Conversion == "" && number && !t.Is("boolean"):
		return fmt.Errorf("the format s needs a text, but the input is %s", t)
	case f.Precision >= 0 && t.Is("int") && (f.Verb == 0 || strings.IndexByte("dboxXcn", f.Verb) >= 0):
		return errors.New("a whole number takes no precision")
	case t.Is("float") && f.Verb != 0 && strings.IndexByte("dboxXc", f.Verb) >= 0:
		return fmt.Errorf("the format %c needs a whole number, but the input is float", f.Verb)
	}
	return nil
}

// Brief shortens a part of a template for an error message, on one line.
func Brief(s string) string {
	const maxRunes = 40
	s = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, s)
	if runes := []rune(s); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return s
}
