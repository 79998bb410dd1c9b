package value

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str parses a string.
func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			s := p.text[start:p.at]
			p.at++
			return strings.ToValidUTF8(s, "\uFFFD"), nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20 && !p.lenient:
			return "", p.fail("a text holds the control character %s: write it as an escape", p.found())
		}
		p.at++
	}
	return "", p.fail("the text in quotes does not end")
}

// escaped continues a string at its first backslash.
func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	b.WriteString(p.text[start:p.at])
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
			continue
		case c < 0x20 && !p.lenient:
			return "", p.fail("a text holds the control character %s: write it as an escape", p.found())
		default:
			b.WriteByte(c)
		}
		p.at++
	}
	return "", p.fail("the text in quotes does not end")
}

// escape parses an escape sequence, including the backslash.
func (p *parser) escape(b *strings.Builder) error {
	if p.at+1 >= len(p.text) {
		return p.fail("the text in quotes does not end")
	}
	c := p.text[p.at+1]
	if c == 'u' {
		return p.unicode(b)
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return p.fail(`\%c is not an escape`, c)
	}
	b.WriteByte("\"\\/\b\f\n\r\t"[i])
	p.at += 2
	return nil
}

// unicode parses \uXXXX, or two of them for a surrogate pair.
func (p *parser) unicode(b *strings.Builder) error {
	r, ok := p.hex(p.at)
	if !ok {
		return p.fail(`\u needs four hexadecimal digits`)
	}
	p.at += 6
	if utf16.IsSurrogate(r) {
		low, ok := p.hex(p.at)
		if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
			b.WriteRune(pair)
			p.at += 6
			return nil
		}
		r = utf8.RuneError // an unpaired surrogate
	}
	b.WriteRune(r)
	return nil
}

// hex parses the code of the escape sequence at a byte.
func (p *parser) hex(at int) (rune, bool) {
	if at+6 > len(p.text) || p.text[at] != '\\' || p.text[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
