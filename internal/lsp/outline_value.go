package lsp

import "strings"

// value reads what stands behind a colon or a dash into a slot, and goes to the
// start of the next line. The column is that of the key or dash; -1 for a value
// on a line of its own.
func (s *outlineParser) value(to *node, at, column int) {
	at = s.properties(to, s.skipSpaces(at))
	end := s.lineEnd(at)
	to.start, to.end = at, at
	if at >= end || s.comment(at) {
		to.start, to.end = min(to.start, end), min(to.end, end)
		s.at = s.next(end)
		return
	}
	switch c := s.text[at]; c {
	case '|', '>':
		s.block(to, at, column)
		return
	case '{', '[':
		at = s.brackets(to, at, column)
	case '"', '\'':
		s.quoted(to, at)
		at = to.end
	case '*':
		s.scalar(to, at, s.plainEnd(at, end), alias)
		at = to.end
	default:
		s.scalar(to, at, s.plainEnd(at, end), plain)
		at = to.end
	}
	s.extendOpen(to.end)
	s.at = s.next(s.lineEnd(at))
}

// properties reads tags and anchors before a value.
func (s *outlineParser) properties(to *node, at int) int {
	for at < len(s.text) && (s.text[at] == '!' || s.text[at] == '&') {
		end := at
		for end < len(s.text) && !isBlank(s.text[end]) {
			end++
		}
		if s.text[at] == '!' {
			to.tag = s.text[at:end]
		}
		at = s.skipSpaces(end)
	}
	return at
}

// scalar fills a slot with a single value.
func (s *outlineParser) scalar(to *node, at, end int, as style) {
	to.kind, to.style, to.start, to.end, to.text = scalar, as, at, end, s.text[at:end]
}

// quoted reads a text in quotes; one that is never closed ends with its line.
func (s *outlineParser) quoted(to *node, at int) {
	end, as := s.quoteEnd(at), double
	if s.text[at] == '\'' {
		as = single
	}
	if end > len(s.text) {
		end = s.lineEnd(at)
	}
	s.scalar(to, at, end, as)
	to.text = unquote(s.text[at:end])
}

// block reads | and > with the lines that belong to them: those that are
// indented further than the collection that holds the key.
func (s *outlineParser) block(to *node, at, column int) {
	head := s.lineEnd(at)
	s.at = s.next(head)
	end := head
	if column < 0 {
		column = 0
		if t := s.top(); t != nil {
			column = t.indent
		}
	}
	for s.at < len(s.text) {
		stop := s.lineEnd(s.at)
		line := s.text[s.at:stop]
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) != "" {
			if depth <= column {
				break
			}
			end = stop
		}
		s.at = s.next(stop)
	}
	if strings.Contains(s.text[at:s.plainEnd(at, head)], "+") { // the empty lines below belong to it
		end = max(end, s.at)
	}
	to.kind, to.style, to.start, to.end = scalar, block, at, end
	to.text = s.text[min(s.next(head), end):end]
	s.extendOpen(end)
}

// brackets reads a collection in brackets, which may go over several lines and
// may not be closed yet. It answers the offset behind it.
func (s *outlineParser) brackets(to *node, at, column int) int {
	to.kind, to.flow, to.start = sequence, true, at
	closing := byte(']')
	if s.text[at] == '{' {
		to.kind, closing = mapping, '}'
	}
	s.depth++
	defer func() { s.depth-- }()
	at++
	for {
		at = s.skipFlow(at, column)
		if s.flowOver(at, column) || s.depth > maxLevels {
			to.end = at
			return at
		}
		switch s.text[at] {
		case closing:
			to.end = at + 1
			return at + 1
		case ']', '}': // of an outer collection: this one was not closed
			to.end = at
			return at
		case ',':
			at++
		default:
			at = s.flowEntry(to, at, column)
		}
	}
}

// skipFlow skips blanks and comments, over lines that still belong to brackets.
func (s *outlineParser) skipFlow(at, column int) int {
	for at < len(s.text) {
		switch {
		case s.text[at] == '\n' && s.outdented(at+1, column):
			return at
		case isBlank(s.text[at]):
			at++
		case s.comment(at):
			at = s.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// flowOver tells whether the text or the indentation ends open brackets.
func (s *outlineParser) flowOver(at, column int) bool {
	return at >= len(s.text) || s.text[at] == '\n' && s.outdented(at+1, column)
}

// outdented tells whether a line is too far left to belong to brackets that a
// key at the column holds, unless it closes them.
func (s *outlineParser) outdented(at, column int) bool {
	end := s.lineEnd(at)
	line := s.text[at:end]
	content := strings.TrimLeft(line, " \t")
	return content != "" && len(line)-len(content) <= column && content[0] != ']' && content[0] != '}' && content[0] != '#'
}

// flowEntry reads one entry inside of brackets.
func (s *outlineParser) flowEntry(to *node, at, column int) int {
	first := &node{start: at, end: at}
	next := s.flowValue(first, at, column)
	if next == at {
		return at + 1 // nothing that an entry can start with
	}
	after := s.skipSpaces(next)
	isPair := after < len(s.text) && s.text[after] == ':' && first.kind == scalar
	if to.kind == sequence && !isPair {
		to.items = append(to.items, first)
		return next
	}
	p := &pair{key: first.text, start: first.start, end: first.end, colon: isPair, value: &node{start: next, end: next}}
	if isPair {
		next = s.skipFlow(after+1, column)
		p.value.start, p.value.end = next, next
		if !s.flowOver(next, column) && !strings.ContainsRune(",]}", rune(s.text[next])) {
			next = max(s.flowValue(p.value, next, column), next+1)
		}
	}
	if to.kind == mapping {
		to.pairs = append(to.pairs, p)
		return next
	}
	to.items = append(to.items, &node{kind: mapping, flow: true, start: p.start, end: next, pairs: []*pair{p}})
	return next
}

// flowValue reads one value inside of brackets.
func (s *outlineParser) flowValue(to *node, at, column int) int {
	at = s.properties(to, at)
	if at >= len(s.text) {
		return at
	}
	switch s.text[at] {
	case '{', '[':
		return s.brackets(to, at, column)
	case '"', '\'':
		s.quoted(to, at)
		return to.end
	}
	end := at
	for end < len(s.text) && !strings.ContainsRune(",[]{}\n\r", rune(s.text[end])) {
		if s.text[end] == ':' && (end+1 == len(s.text) || strings.ContainsRune(" \t\n\r,[]{}", rune(s.text[end+1]))) ||
			s.comment(end) {
			break
		}
		end++
	}
	for end > at && isSpace(s.text[end-1]) {
		end--
	}
	if end > at {
		s.scalar(to, at, end, plain)
	}
	return end
}

// plainEnd is where a plain value of a line ends: before a comment and trailing blanks.
func (s *outlineParser) plainEnd(at, end int) int {
	for i := at; i < end; i++ {
		if s.comment(i) {
			end = i
			break
		}
	}
	for end > at && isBlank(s.text[end-1]) {
		end--
	}
	return end
}

// comment tells whether a comment starts at an offset.
func (s *outlineParser) comment(at int) bool {
	return at < len(s.text) && s.text[at] == '#' && (at == 0 || isBlank(s.text[at-1]))
}

// quoteEnd is the offset behind a closing quote; behind the text where there is none.
func (s *outlineParser) quoteEnd(at int) int {
	quote := s.text[at]
	for i := at + 1; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\\' && quote == '"':
			i++
		case s.text[i] == quote && quote == '\'' && i+1 < len(s.text) && s.text[i+1] == quote:
			i++
		case s.text[i] == quote:
			return i + 1
		case s.text[i] == '\n' && s.looksLikeKey(i+1):
			return len(s.text) + 1 // somebody has not typed the closing quote yet
		}
	}
	return len(s.text) + 1
}

// looksLikeKey tells whether a line starts with a word and a colon, or a dash:
// in a quoted text over several lines that is rare, behind an open quote usual.
func (s *outlineParser) looksLikeKey(at int) bool {
	at = s.skipSpaces(at)
	end := s.lineEnd(at)
	if at >= end {
		return false
	}
	if s.text[at] == '-' && blankAt(s.text[:end], at+1) {
		return true
	}
	i := at
	for i < end && isWord(s.text[i]) {
		i++
	}
	return i > at && i < end && s.text[i] == ':' && blankAt(s.text[:end], i+1)
}

// lineEnd is the offset of the line break at or after an offset, or the text's end.
func (s *outlineParser) lineEnd(at int) int {
	if at > len(s.text) {
		return len(s.text)
	}
	if n := strings.IndexByte(s.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(s.text)
}

// next is the start of the line behind a line's end.
func (s *outlineParser) next(end int) int { return min(end+1, len(s.text)) }

// skipSpaces skips blanks of the same line.
func (s *outlineParser) skipSpaces(at int) int {
	for at < len(s.text) && isSpace(s.text[at]) {
		at++
	}
	return at
}

// isSpace tells whether a character is a blank within a line.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// isBlank tells whether a character is a blank or ends a line.
func isBlank(c byte) bool { return isSpace(c) || c == '\n' }

// isWord tells whether a character belongs to an id or a key; those above ASCII do.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$' || c >= 0x80
}

// blankAt tells whether a text ends at an offset or has a blank there.
func blankAt(text string, at int) bool { return at >= len(text) || isBlank(text[at]) }

// unquote takes the quotes away and undoes the escapes that ids may hold.
func unquote(text string) string {
	if len(text) == 0 || text[0] != '"' && text[0] != '\'' {
		return text
	}
	quote := text[:1]
	text = strings.TrimSuffix(text[1:], quote)
	if quote == "'" {
		return strings.ReplaceAll(text, "''", "'")
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(text)
}
