// Package code reads parts of Java and Python programs: constants, chains of calls, and what they
// are assigned to. It is tolerant: what it does not know is skipped, and nothing is executed.
package code

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	First  bool   // the first one of its line
	Column int    // in characters, from 0
	line   int    // from 1
	width  int    // in characters, up to the end of the line
	filled bool   // a string with values in it
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
	closing  []int   // for each token that opens a bracket: the one that closes it

	read   []bool // tokens that begin calls and arguments that were read; see Rest
	parts  []bool // tokens of statements that were read as a whole
	claims []claim
}

// maxTokens limits the tokens of a program.
const maxTokens = 1 << 20

// Scan reads the tokens of a program.
func Scan(file *source.File, l Language) *Source {
	s := &scanner{Source: &Source{File: file, Language: l}, text: string(file.Text), first: true, line: 1}
	for s.at < len(s.text) && len(s.Tokens) < maxTokens {
		s.next()
	}
	s.add(end, "", len(s.text))
	s.pair()
	return s.Source
}

// pair finds the brackets that belong together. One that is not closed ends with the file.
func (s *Source) pair() {
	s.closing, s.read, s.parts = make([]int, len(s.Tokens)), make([]bool, len(s.Tokens)), make([]bool, len(s.Tokens))
	var open []int
	for i, t := range s.Tokens {
		s.closing[i] = len(s.Tokens) - 1
		switch {
		case t.kind != mark:
		case t.Text == "(" || t.Text == "[" || t.Text == "{":
			open = append(open, i)
		case len(open) > 0 && (t.Text == ")" || t.Text == "]" || t.Text == "}"):
			s.closing[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
}

// Token returns the token with a number; the end of the file for one that does not exist.
func (s *Source) Token(i int) Token {
	if i < 0 || i >= len(s.Tokens) {
		return s.Tokens[len(s.Tokens)-1]
	}
	return s.Tokens[i]
}

// Span returns the place of a token.
func (s *Source) Span(t Token) source.Span {
	return source.Span{File: s.File, Start: source.Pos{Line: t.line, Column: t.Column + 1}, End: source.Pos{Line: t.line, Column: t.Column + 1 + max(1, t.width)}}
}

type scanner struct {
	*Source
	text  string
	at    int
	first bool

	line, column int // of the place in the text up to which they are counted
	counted      int // offset of that place
}

// count counts lines and characters up to an offset.
func (s *scanner) count(to int) {
	part := s.text[s.counted:to]
	if i := strings.LastIndexByte(part, '\n'); i >= 0 {
		s.line += strings.Count(part, "\n")
		s.column, part = 0, part[i+1:]
	}
	s.column += utf8.RuneCountInString(part)
	s.counted = to
}

func (s *scanner) add(k kind, value string, to int) {
	s.count(s.at)
	visible, _, _ := strings.Cut(s.text[s.at:to], "\n")
	s.Tokens = append(s.Tokens, Token{kind: k, Text: value, At: s.at, First: s.first, Column: s.column, line: s.line, width: utf8.RuneCountInString(visible)})
	s.at, s.first = to, false
}

// next reads a token, white space or a comment.
func (s *scanner) next() {
	rest := s.text[s.at:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\n':
		s.at++
		s.first = true
	case unicode.IsSpace(r), r == '\\' && s.Language == Python:
		s.at += size
	case s.Language == Python && r == '#', s.Language == Java && strings.HasPrefix(rest, "//"):
		s.at += lineLength(rest)
	case s.Language == Java && strings.HasPrefix(rest, "/*"):
		s.skipTo("*/", 2)
	case r == '"' || r == '\'':
		s.readText(0)
	case isLetter(r):
		s.readWord(rest)
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

// readWord reads a word, or a string with a prefix.
func (s *scanner) readWord(rest string) {
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
	s.first = s.first || strings.Contains(s.text[s.at:to], "\n")
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
	s.add(text, strings.ToValidUTF8(value, "�"), to)
	s.Tokens[len(s.Tokens)-1].filled = strings.Contains(flags, "f") && strings.Contains(value, "{")
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
	if open < 0 || open >= len(s.closing) {
		return len(s.Tokens) - 1
	}
	return s.closing[open]
}
