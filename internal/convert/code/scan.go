// Package code reads parts of Java and Python programs: constants, chains of calls, and what they
// are assigned to. It is tolerant: what it does not know is skipped, and nothing is executed.
package code

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Language is a programming language.
type Language uint8

// The languages.
const (
	Java Language = iota
	Python
)

// kind is the kind of a token.
type kind uint8

const (
	word   kind = iota // an identifier or keyword
	text               // a string
	number             // a number
	mark               // one character of punctuation
	end                // the end of the file
)

// Token is a part of a program.
type Token struct {
	kind   kind
	Text   string // of a string: its value
	At     int    // offset in the file
	length int
	First  bool // the first one of its line
	Column int  // in bytes, from 0
	filled bool // a string with values in it
}

// Is reports whether a token is a word or a mark.
func (t Token) Is(text string) bool { return (t.kind == word || t.kind == mark) && t.Text == text }

// IsWord reports whether a token is an identifier or a keyword.
func (t Token) IsWord() bool { return t.kind == word }

// Source is a program as tokens.
type Source struct {
	File     *source.File
	Language Language
	Tokens   []Token // the last one marks the end
}

// maxTokens limits the tokens of a program.
const maxTokens = 1 << 20

// Scan reads the tokens of a program.
func Scan(file *source.File, l Language) *Source {
	s := &scanner{Source: &Source{File: file, Language: l}, text: string(file.Text), first: true}
	for s.at < len(s.text) && len(s.Tokens) < maxTokens {
		s.next()
	}
	s.add(end, "", len(s.text))
	return s.Source
}

// Token returns the token with a number; the end of the file for one that does not exist.
func (s *Source) Token(i int) Token {
	if i < 0 || i >= len(s.Tokens) {
		return s.Tokens[len(s.Tokens)-1]
	}
	return s.Tokens[i]
}

// Span returns the place of a token.
func (s *Source) Span(t Token) source.Span { return input.Bytes(s.File, t.At, max(1, t.length)) }

type scanner struct {
	*Source
	text  string
	at    int
	line  int // offset of the current line
	first bool
}

func (s *scanner) add(k kind, value string, to int) {
	s.Tokens = append(s.Tokens, Token{kind: k, Text: value, At: s.at, length: to - s.at, First: s.first, Column: s.at - s.line})
	s.at, s.first = to, false
}

// next reads a token, white space or a comment.
func (s *scanner) next() {
	rest := s.text[s.at:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\n':
		s.at++
		s.line, s.first = s.at, true
	case unicode.IsSpace(r), r == '\\' && s.Language == Python:
		s.at += size
	case s.Language == Python && r == '#', s.Language == Java && strings.HasPrefix(rest, "//"):
		s.at += lineLength(rest)
	case s.Language == Java && strings.HasPrefix(rest, "/*"):
		s.skipTo("*/", 2)
	case r == '"' || r == '\'':
		s.readText(0)
	case isLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return !isLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		prefix := strings.ToLower(rest[:n])
		if s.Language == Python && n < len(rest) && (rest[n] == '"' || rest[n] == '\'') && strings.Trim(prefix, "rbfut") == "" && n <= 2 {
			s.readText(n)
			return
		}
		s.add(word, rest[:n], s.at+n)
	case unicode.IsDigit(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsDigit(r) && !isLetter(r) && r != '.' })
		if n < 0 {
			n = len(rest)
		}
		s.add(number, rest[:n], s.at+n)
	default:
		s.add(mark, rest[:size], s.at+size)
	}
}

func isLetter(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func lineLength(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// skipTo continues after a text.
func (s *scanner) skipTo(text string, from int) {
	n := strings.Index(s.text[s.at+from:], text)
	if n < 0 {
		s.at = len(s.text)
		return
	}
	to := s.at + from + n + len(text)
	if i := strings.LastIndexByte(s.text[s.at:to], '\n'); i >= 0 {
		s.line, s.first = s.at+i+1, true
	}
	s.at = to
}

// readText reads a string that begins after a prefix of a length.
func (s *scanner) readText(prefix int) {
	flags := strings.ToLower(s.text[s.at : s.at+prefix])
	begin := s.at + prefix
	quote := s.text[begin : begin+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[begin:], triple) {
		quote = triple
	}
	to, raw := begin+len(quote), strings.Contains(flags, "r")
	var b strings.Builder
	for to < len(s.text) && !strings.HasPrefix(s.text[to:], quote) {
		c := s.text[to]
		switch {
		case c == '\n' && len(quote) == 1: // not closed
			s.addText(b.String(), to, quote, flags)
			return
		case c == '\\' && to+1 < len(s.text) && !raw:
			b.WriteString(unescape(s.text[to+1]))
			to += 2
		default:
			b.WriteByte(c)
			to++
		}
	}
	s.addText(b.String(), min(len(s.text), to+len(quote)), quote, flags)
}

func unescape(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '\n':
		return ""
	}
	return string(rune(c))
}

func (s *scanner) addText(value string, to int, quote, flags string) {
	if len(quote) == 3 && s.Language == Java {
		value = outdent(strings.TrimPrefix(strings.TrimLeft(value, " \t"), "\n"))
	}
	from := s.at
	s.add(text, strings.ToValidUTF8(value, "�"), to)
	s.Tokens[len(s.Tokens)-1].filled = strings.Contains(flags, "f") && strings.Contains(value, "{")
	if i := strings.LastIndexByte(s.text[from:to], '\n'); i >= 0 {
		s.line = from + i + 1
	}
}

// outdent removes the common indentation of the lines of a text block.
func outdent(text string) string {
	lines := strings.Split(text, "\n")
	least := -1
	for i, line := range lines {
		n := len(line) - len(strings.TrimLeft(line, " \t"))
		if (n < len(line) || i == len(lines)-1) && (least < 0 || n < least) {
			least = n
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(least, 0), len(line)):], " \t")
	}
	return strings.Join(lines, "\n")
}

// Index returns the number of the first token after a place that is one of words; -1 for none.
func (s *Source) Index(from int, words ...string) int {
	for i := from; i < len(s.Tokens); i++ {
		if slices.ContainsFunc(words, s.Tokens[i].Is) {
			return i
		}
	}
	return -1
}

// Close returns the number of the token that closes the bracket at a place, or of the last one.
func (s *Source) Close(open int) int {
	depth := 0
	for i := open; i < len(s.Tokens); i++ {
		t := s.Tokens[i]
		if t.kind != mark {
			continue
		}
		switch t.Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth <= 0 {
				return i
			}
		}
	}
	return len(s.Tokens) - 1
}
