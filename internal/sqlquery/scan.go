package sqlquery

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// scanner splits a statement at its parameters.
type scanner struct {
	text     string
	family   family
	syntax   syntax
	at       int // offset of the next byte
	from     int // offset of the current segment
	segments []segment
	ended    bool   // a semicolon has ended the statement
	first    string // the first word outside of comments
	writes   int    // offset of a word that changes data, -1 for none
}

// scan reads the whole text.
func (s *scanner) scan() error {
	for s.at < len(s.text) {
		if skipped, err := s.skip(); err != nil {
			return err
		} else if skipped {
			continue
		}
		c := s.text[s.at]
		s.look()
		if s.ended && !isBlank(c) && c != ';' {
			return s.fail(s.at, "unexpected second statement: a query is one statement")
		}
		if err := s.plain(c); err != nil {
			return err
		}
	}
	s.cut(s.at)
	if !s.ended && strings.TrimSpace(s.text) == "" {
		return s.fail(0, "the query is empty")
	}
	return nil
}

// listing matches what follows PRAGMA if it lists something: table_info(people).
var listing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s+(\w+\s*\.\s*)?\w+_(list|info|xinfo)\s*($|[(;])`)
})

// look examines the word that begins here, if one does.
func (s *scanner) look() {
	if isWord(s.before()) {
		return
	}
	word := s.word(s.at)
	if s.first == "" {
		s.first = word
	}
	if s.writes < 0 && word != "" && slices.Contains(s.family.writes, strings.ToUpper(word)) {
		s.writes = s.at
	}
}

// checkReads returns an error for a statement that does not read, of a dialect without sessions that
// only read.
func (s *scanner) checkReads() error {
	f := s.family
	switch {
	case f.check != nil:
		return f.check(s)
	case f.reads == nil:
		return nil
	case !slices.Contains(f.reads, strings.ToUpper(s.first)):
		return s.fail(max(0, strings.Index(s.text, s.first)), "a query of "+f.title+" begins with one of "+strings.Join(f.reads, ", "))
	case s.writes >= 0:
		return s.fail(s.writes, "a query of "+f.title+" only reads: "+strings.ToUpper(s.word(s.writes))+" is not allowed")
	}
	return nil
}

// checkSQLite returns an error for a statement that reaches a file other than that of the URL,
// or changes the connection: ATTACH and VACUUM INTO create files, also where a connection only reads.
func (s *scanner) checkSQLite() error {
	first, at := strings.ToUpper(s.first), max(0, strings.Index(s.text, s.first))
	switch first {
	case "ATTACH", "DETACH", "VACUUM":
		return s.fail(at, first+" is not supported: a query reads the database of its connection")
	case "PRAGMA":
		if !listing().MatchString(s.text[at+len(first):]) {
			return s.fail(at, "of PRAGMA, only those that list something are supported, such as table_info")
		}
	}
	return nil
}

// plain reads one character that is neither quoted nor in a comment.
func (s *scanner) plain(c byte) error {
	switch {
	case c == ';':
		s.ended = true
	case c == ':':
		s.colon()
		return nil
	case c == '\\' && s.next(1) == ':':
		s.cut(s.at)
		s.at++
		s.from = s.at // keep the colon
		for s.next(0) == ':' {
			s.at++
		}
		return nil
	case c == '?' && !s.syntax.question:
		return s.fail(s.at, "? is not supported: use the name of an input, such as :name")
	case c == '$' && s.syntax.placeholder == "$" && isDigit(s.next(1)) && !isWord(s.before()):
		return s.fail(s.at, "a numbered parameter is not supported: use the name of an input, such as :name")
	case strings.IndexByte(s.syntax.marks, c) >= 0 && isWord(rune(s.next(1))) && !isWord(s.before()) && s.before() != '@':
		return s.fail(s.at, "this "+s.family.title+" parameter is not supported: use the name of an input, such as :name")
	}
	_, size := utf8.DecodeRuneInString(s.text[s.at:])
	s.at += size
	return nil
}

// colon reads a parameter, or other colons. After a word or a quote they belong to
// a slice, a label, a field ('name':value) or a path ("column":name).
func (s *scanner) colon() {
	colons := 0
	for s.next(colons) == ':' {
		colons++
	}
	name := s.word(s.at + colons)
	if colons > 1 || name == "" || isDigit(name[0]) || isWord(s.before()) || s.before() == '\'' || s.before() == '"' {
		s.at += colons
		return
	}
	s.cut(s.at)
	s.segments = append(s.segments, segment{name: name, at: s.at})
	s.at += 1 + len(name)
	s.from = s.at
}

// word returns the name at an offset, or "".
func (s *scanner) word(at int) string {
	rest := s.text[at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(rest)
	}
	return rest[:end]
}

// cut ends the current segment before an offset.
func (s *scanner) cut(at int) {
	if at > s.from {
		s.segments = append(s.segments, segment{text: s.text[s.from:at], at: s.from})
	}
	s.from = at
}

// skip skips a quoted text or a comment, if one begins here.
func (s *scanner) skip() (bool, error) {
	from := s.at
	rest := s.text[from:]
	y := s.syntax
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "/*"):
		return true, s.block(y.nested)
	case strings.HasPrefix(rest, "--") && (!y.blankDash || len(rest) == 2 || isBlank(rest[2])), c == '#' && y.hash, strings.HasPrefix(rest, "//") && y.slashes:
		s.line()
		return true, nil
	case s.ended:
		return false, nil // a second statement is an error
	case c == '\'' || c == '"':
		return true, s.literal(c)
	case c == '`' && y.backticks:
		return true, s.quoted(c, false)
	case c == '[' && y.brackets:
		return true, s.quoted(']', false)
	case c == '$' && y.dollar && !isWord(s.before()):
		return s.dollar()
	}
	return false, nil
}

// line skips the rest of the line.
func (s *scanner) line() {
	if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
		s.at += i + 1
		return
	}
	s.at = len(s.text)
}

// block skips a block comment. PostgreSQL's may nest.
func (s *scanner) block(nests bool) error {
	from, depth := s.at, 0
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, "/*"):
			if s.at == from || nests {
				depth++
			}
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			s.at += 2
			if depth--; depth == 0 {
				return nil
			}
		default:
			s.at++
		}
	}
	return s.fail(from, "unclosed comment")
}

// quoted skips a quoted text. A doubled quote is escaped.
func (s *scanner) quoted(end byte, backslash bool) error {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && backslash:
			s.at++
		case c == end && s.next(1) == end && (end != ']' || s.syntax.doubled):
			s.at++
		case c == end:
			s.at++
			return nil
		}
	}
	s.at = len(s.text)
	return s.fail(from, "unclosed quote")
}

// literal skips a text in quotes, or in three of them.
func (s *scanner) literal(end byte) error {
	y := s.syntax
	backslash := strings.IndexByte(y.backslash, end) >= 0 || y.escapes && end == '\'' && s.prefixed('e')
	if !y.triple {
		return s.quoted(end, backslash)
	}
	backslash = backslash && !s.prefixed('r')
	mark := strings.Repeat(string(end), 3)
	if !strings.HasPrefix(s.text[s.at:], mark) {
		return s.quoted(end, backslash)
	}
	from := s.at
	for s.at += len(mark); s.at < len(s.text); s.at++ {
		switch {
		case s.text[s.at] == '\\' && backslash:
			s.at++
		case strings.HasPrefix(s.text[s.at:], mark):
			s.at += len(mark)
			return nil
		}
	}
	s.at = len(s.text)
	return s.fail(from, "unclosed quote")
}

// dollar skips a text in PostgreSQL's dollar quotes, $$…$$ or $tag$…$tag$.
func (s *scanner) dollar() (bool, error) {
	tag := s.word(s.at + 1)
	if tag != "" && isDigit(tag[0]) || s.next(1+len(tag)) != '$' {
		return false, nil
	}
	mark := s.text[s.at : s.at+len(tag)+2]
	end := strings.Index(s.text[s.at+len(mark):], mark)
	if end < 0 {
		return true, s.fail(s.at, "unclosed quote")
	}
	s.at += end + 2*len(mark)
	return true, nil
}

// prefixed reports whether the quote has a prefix, a letter in lower case: E'…' enables backslashes, and
// r'…' and rb'…' disable them.
func (s *scanner) prefixed(letter byte) bool {
	at := s.at
	for at > 0 && isWord(rune(s.text[at-1])) {
		at--
	}
	prefix := strings.ToLower(s.text[at:s.at])
	if r, _ := utf8.DecodeLastRuneInString(s.text[:at]); at > 0 && isWord(r) {
		return false
	}
	return prefix == string(letter) || letter == 'r' && (prefix == "rb" || prefix == "br")
}

// next returns the byte n positions ahead, 0 after the end.
func (s *scanner) next(n int) byte {
	if s.at+n < len(s.text) {
		return s.text[s.at+n]
	}
	return 0
}

// before returns the previous character.
func (s *scanner) before() rune {
	r, size := utf8.DecodeLastRuneInString(s.text[:s.at])
	if size == 0 {
		return ' '
	}
	return r
}

// fail returns an error at an offset.
func (s *scanner) fail(at int, reason string) error {
	line, column := position(s.text, at)
	return &Error{Line: line, Column: column, Reason: reason}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isBlank(c byte) bool { return strings.IndexByte(" \t\r\n\f\v", c) >= 0 }
