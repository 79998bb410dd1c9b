package pdf

import (
	"bytes"
	"strings"
)

// object is a value of a PDF file: nil, bool, float64, name, text, array, dict, *stream,
// ref, or keyword in a content stream.
type object any

type (
	name    string
	text    string // the bytes of a string
	keyword string // an operator, or a word of the file's structure
	array   []object
	dict    map[name]object
)

// ref names an object of the file.
type ref struct {
	number, generation int
}

// stream is a dictionary with data.
type stream struct {
	dict dict
	raw  []byte // as in the file, decrypted
}

// maxDepth is the maximum nesting of arrays and dictionaries.
const maxDepth = 64

// lexer reads objects from bytes.
type lexer struct {
	data []byte
	pos  int
}

func isWhite(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

// skipSpace skips white space and comments.
func (l *lexer) skipSpace() {
	for l.pos < len(l.data) {
		switch c := l.data[l.pos]; {
		case isWhite(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.data) && l.data[l.pos] != '\n' && l.data[l.pos] != '\r' {
				l.pos++
			}
		default:
			return
		}
	}
}

// end reports whether there is nothing but white space left.
func (l *lexer) end() bool {
	l.skipSpace()
	return l.pos >= len(l.data)
}

// next returns the next object. Delimiters that close are keywords. At the end it is
// the empty keyword.
func (l *lexer) next() object { return l.object(0) }

func (l *lexer) object(depth int) object {
	if l.end() {
		return keyword("")
	}
	switch c := l.data[l.pos]; {
	case c == '/':
		l.pos++
		return l.name()
	case c == '(':
		return l.literal()
	case c == '<' && l.peek(1) == '<':
		l.pos += 2
		return l.dict(depth + 1)
	case c == '<':
		return l.hex()
	case c == '[':
		l.pos++
		return l.array(depth + 1)
	case c == '>' && l.peek(1) == '>':
		l.pos += 2
		return keyword(">>")
	case isDelimiter(c):
		l.pos++
		return keyword(string(c))
	case c >= '0' && c <= '9', c == '+', c == '-', c == '.':
		return l.number()
	}
	return l.keyword()
}

// peek returns the byte at an offset, 0 after the end.
func (l *lexer) peek(offset int) byte {
	if l.pos+offset >= len(l.data) {
		return 0
	}
	return l.data[l.pos+offset]
}

// word returns the bytes up to the next white space or delimiter.
func (l *lexer) word() []byte {
	start := l.pos
	for l.pos < len(l.data) && !isWhite(l.data[l.pos]) && !isDelimiter(l.data[l.pos]) {
		l.pos++
	}
	return l.data[start:l.pos]
}

// keyword reads a word. Those of most contents are constants, which need no memory.
func (l *lexer) keyword() object {
	switch word := l.word(); string(word) {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	case "BT":
		return keyword("BT")
	case "ET":
		return keyword("ET")
	case "Td":
		return keyword("Td")
	case "Tf":
		return keyword("Tf")
	case "Tj":
		return keyword("Tj")
	case "TJ":
		return keyword("TJ")
	case "Tm":
		return keyword("Tm")
	case "cm":
		return keyword("cm")
	case "q":
		return keyword("q")
	case "Q":
		return keyword("Q")
	default:
		return keyword(word)
	}
}

func (l *lexer) name() object {
	word := l.word()
	if !bytes.Contains(word, []byte("#")) {
		return name(word)
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '#' && i+2 < len(word) && unhex(word[i+1]) >= 0 && unhex(word[i+2]) >= 0 {
			b.WriteByte(byte(unhex(word[i+1])<<4 | unhex(word[i+2])))
			i += 2
			continue
		}
		b.WriteByte(word[i])
	}
	return name(b.String())
}

// number reads a number. Signs in the middle, which some producers write, end it.
func (l *lexer) number() object {
	word := l.word()
	negative, digits, fraction := false, 0, 0.0
	value := 0.0
	for i := range word {
		switch c := word[i]; {
		case c == '-' && digits == 0:
			negative = true
		case c == '+' && digits == 0:
		case c == '.' && fraction == 0:
			fraction = 1
		case c >= '0' && c <= '9':
			digits++
			if fraction > 0 {
				fraction /= 10
				value += float64(c-'0') * fraction
			} else {
				value = value*10 + float64(c-'0')
			}
		case digits == 0:
			return keyword(word)
		}
	}
	if negative {
		value = -value
	}
	return value
}

func (l *lexer) literal() object {
	var b []byte
	depth := 0
	for l.pos < len(l.data) {
		c := l.data[l.pos]
		l.pos++
		switch c {
		case '(':
			if depth++; depth == 1 {
				continue
			}
		case ')':
			if depth--; depth == 0 {
				return text(b)
			}
		case '\\':
			b = l.escape(b)
			continue
		}
		b = append(b, c)
	}
	return text(b)
}

// escape appends the character of an escape sequence, whose backslash was read.
func (l *lexer) escape(b []byte) []byte {
	c := l.peek(0)
	l.pos++
	switch c {
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case '\n':
		return b
	case '\r':
		if l.peek(0) == '\n' {
			l.pos++
		}
		return b
	}
	if c < '0' || c > '7' {
		return append(b, c)
	}
	value := int(c - '0')
	for range 2 {
		if d := l.peek(0); d >= '0' && d <= '7' {
			value = value<<3 | int(d-'0')
			l.pos++
		}
	}
	return append(b, byte(value))
}

func (l *lexer) hex() object {
	l.pos++
	var b []byte
	high := -1
	for l.pos < len(l.data) {
		c := l.data[l.pos]
		l.pos++
		if c == '>' {
			break
		}
		digit := unhex(c)
		switch {
		case digit < 0:
		case high < 0:
			high = digit
		default:
			b = append(b, byte(high<<4|digit))
			high = -1
		}
	}
	if high >= 0 {
		b = append(b, byte(high<<4))
	}
	return text(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// array reads the elements up to the closing bracket.
func (l *lexer) array(depth int) object {
	var a array
	if depth > maxDepth {
		return a
	}
	for {
		o := l.object(depth)
		switch k, isKeyword := o.(keyword); {
		case k == "R" && isKeyword && len(a) >= 2:
			a = append(a[:len(a)-2], refOf(a[len(a)-2], a[len(a)-1]))
		case isKeyword && (k == "]" || k == "" || k == "endobj" || k == ">>"):
			return a
		case !isKeyword:
			a = append(a, o)
		}
	}
}

// refOf makes a reference of two numbers.
func refOf(number, generation object) object {
	n, ok := number.(float64)
	g, ok2 := generation.(float64)
	if !ok || !ok2 || n < 0 || n > 1<<31 {
		return nil
	}
	return ref{int(n), int(g)}
}

// dict reads the entries up to the closing brackets.
func (l *lexer) dict(depth int) object {
	d := dict{}
	if depth > maxDepth {
		return d
	}
	for {
		key, ok := l.object(depth).(name)
		if !ok {
			if l.closesDict() {
				return d
			}
			continue
		}
		value := l.object(depth)
		if k, isKeyword := value.(keyword); isKeyword {
			if k == ">>" || k == "" {
				return d
			}
			continue
		}
		if n, isNumber := value.(float64); isNumber {
			if r, ok := l.reference(n); ok {
				value = r
			}
		}
		d[key] = value
	}
}

// closesDict reports whether the object that was read before ends a dictionary.
func (l *lexer) closesDict() bool {
	before := l.data[max(0, l.pos-6):l.pos]
	return l.pos >= len(l.data) || strings.HasSuffix(string(before), ">>") || string(before) == "endobj" || strings.HasSuffix(string(before), "stream")
}

// reference reads the rest of a reference whose number was read.
func (l *lexer) reference(number float64) (object, bool) {
	start := l.pos
	l.skipSpace()
	if c := l.peek(0); c >= '0' && c <= '9' {
		if generation, ok := l.number().(float64); ok {
			l.skipSpace()
			if after := l.peek(1); l.peek(0) == 'R' && (isWhite(after) || isDelimiter(after)) {
				l.pos++
				return refOf(number, generation), true
			}
		}
	}
	l.pos = start
	return nil, false
}
