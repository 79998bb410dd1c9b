package value

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/jsontext"
)

// str parses a string.
func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	ascii, err := p.skipPlain()
	if err != nil {
		return "", err
	}
	if p.text[p.at] == '\\' {
		return p.escaped(start)
	}
	s := p.text[start:p.at]
	p.at++
	if ascii {
		return s, nil
	}
	return validText(s), nil
}

// skipPlain moves to the next quote or backslash of a text, and reports whether all
// characters before it are ASCII.
func (p *parser) skipPlain() (ascii bool, err error) {
	text, seen := p.text, byte(0)
	for at := p.at; at < len(text); at++ {
		c := text[at]
		if c > '\\' || c >= ' ' && c != '"' && c != '\\' {
			if seen |= c; c < utf8.RuneSelf {
				at += jsontext.Plain(text[at+1:])
			}
			continue
		}
		p.at = at
		switch {
		case c == '"' || c == '\\':
			return seen < utf8.RuneSelf, nil
		case !p.lenient:
			return false, p.fail("a text holds the control character %s: write it as an escape", p.found())
		}
	}
	p.at = len(text)
	return false, p.fail("the text in quotes does not end")
}

// escaped continues a string at its first backslash.
func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	b.Grow(p.untilQuote(start))
	for {
		b.WriteString(p.text[start:p.at])
		if p.text[p.at] == '"' {
			p.at++
			return validText(b.String()), nil
		}
		if err := p.escape(&b); err != nil {
			return "", err
		}
		start = p.at
		if _, err := p.skipPlain(); err != nil {
			return "", err
		}
	}
}

// validText replaces bytes that are not UTF-8. The check first is several times
// as fast as strings.ToValidUTF8 for a text that is valid.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// untilQuote returns how many bytes a text takes that begins at start, escapes
// as they are written.
func (p *parser) untilQuote(start int) int {
	for at := p.at; at < len(p.text); at++ {
		switch p.text[at] {
		case '\\':
			at++
		case '"':
			return at - start
		}
	}
	return len(p.text) - start
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
		r, _ := utf8.DecodeRuneInString(p.text[p.at+1:])
		if !unicode.IsPrint(r) {
			return p.fail(`a backslash before %U is not an escape`, r)
		}
		return p.fail(`\%c is not an escape`, r)
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
