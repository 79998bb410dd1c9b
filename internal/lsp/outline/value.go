package outline

import "strings"

// value reads the text after a colon or a dash into a node and advances to the
// next line. column is that of the key or dash, or -1 for a value on its own line.
func (p *parser) value(to *Node, at, column int) {
	at = p.properties(to, p.skipSpaces(at))
	end := p.lineEnd(at)
	to.Start, to.End = at, at
	if at >= end || p.isComment(at) {
		to.Start, to.End = min(to.Start, end), min(to.End, end)
		p.at = p.nextLine(end)
		return
	}
	switch c := p.text[at]; c {
	case '|', '>':
		p.block(to, at, column)
		return
	case '{', '[':
		at = p.brackets(to, at, column)
	case '"', '\'':
		p.quoted(to, at)
		at = to.End
	case '*':
		p.scalar(to, at, p.plainEnd(at, end), Alias)
		at = to.End
	default:
		p.scalar(to, at, p.plainEnd(at, end), Plain)
		at = to.End
	}
	p.extendOpen(to.End)
	p.at = p.nextLine(p.lineEnd(at))
}

// properties reads the tags and anchors before a value and returns the offset
// after them.
func (p *parser) properties(to *Node, at int) int {
	for at < len(p.text) && (p.text[at] == '!' || p.text[at] == '&') {
		end := at
		for end < len(p.text) && !isBlank(p.text[end]) {
			end++
		}
		if p.text[at] == '!' {
			to.Tag = p.text[at:end]
		}
		at = p.skipSpaces(end)
	}
	return at
}

// scalar makes a node a scalar.
func (p *parser) scalar(to *Node, at, end int, style Style) {
	to.Kind, to.Style, to.Start, to.End, to.Text = Scalar, style, at, end, p.text[at:end]
}

// quoted reads a quoted scalar. An unclosed one ends with its line.
func (p *parser) quoted(to *Node, at int) {
	end, style := p.quoteEnd(at), DoubleQuoted
	if p.text[at] == '\'' {
		style = SingleQuoted
	}
	if end > len(p.text) {
		end = p.lineEnd(at)
	}
	p.scalar(to, at, end, style)
	to.Text = unquote(p.text[at:end])
}

// block reads a block scalar (| or >): the following lines that are indented
// deeper than the collection with the key.
func (p *parser) block(to *Node, at, column int) {
	head := p.lineEnd(at)
	p.at = p.nextLine(head)
	end := head
	if column < 0 {
		column = 0
		if t := p.innermost(); t != nil {
			column = t.indent
		}
	}
	for p.at < len(p.text) {
		stop := p.lineEnd(p.at)
		line := p.text[p.at:stop]
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) != "" {
			if depth <= column {
				break
			}
			end = stop
		}
		p.at = p.nextLine(stop)
	}
	if strings.Contains(p.text[at:p.plainEnd(at, head)], "+") { // "keep": trailing empty lines are content
		end = max(end, p.at)
	}
	to.Kind, to.Style, to.Start, to.End = Scalar, Block, at, end
	to.Text = p.text[min(p.nextLine(head), end):end]
	p.extendOpen(end)
}

// plainEnd returns the end of a plain scalar: before a comment and trailing
// white space.
func (p *parser) plainEnd(at, end int) int {
	for i := at; i < end; i++ {
		if p.isComment(i) {
			end = i
			break
		}
	}
	for end > at && isBlank(p.text[end-1]) {
		end--
	}
	return end
}

// isComment reports whether a comment starts at the offset.
func (p *parser) isComment(at int) bool {
	return at < len(p.text) && p.text[at] == '#' && (at == 0 || isBlank(p.text[at-1]))
}

// quoteEnd returns the offset after the closing quote, or an offset beyond the
// text if there is none.
func (p *parser) quoteEnd(at int) int {
	quote := p.text[at]
	for i := at + 1; i < len(p.text); i++ {
		switch {
		case p.text[i] == '\\' && quote == '"':
			i++
		case p.text[i] == quote && quote == '\'' && i+1 < len(p.text) && p.text[i+1] == quote:
			i++
		case p.text[i] == quote:
			return i + 1
		case p.text[i] == '\n' && p.looksLikeKey(i+1):
			return len(p.text) + 1 // the closing quote is not typed yet
		}
	}
	return len(p.text) + 1
}

// looksLikeKey reports whether a line starts with a word and a colon, or a dash.
// That is rare within a quoted scalar, and usual after an unclosed quote.
func (p *parser) looksLikeKey(at int) bool {
	at = p.skipSpaces(at)
	end := p.lineEnd(at)
	if at >= end {
		return false
	}
	if p.text[at] == '-' && isBlankAt(p.text[:end], at+1) {
		return true
	}
	i := at
	for i < end && IsWordByte(p.text[i]) {
		i++
	}
	return i > at && i < end && p.text[i] == ':' && isBlankAt(p.text[:end], i+1)
}

// lineEnd returns the offset of the next line feed, or the end of the text.
func (p *parser) lineEnd(at int) int {
	if at > len(p.text) {
		return len(p.text)
	}
	if n := strings.IndexByte(p.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(p.text)
}

// nextLine returns the start of the line after the one that ends at end.
func (p *parser) nextLine(end int) int { return min(end+1, len(p.text)) }

func (p *parser) skipSpaces(at int) int {
	for at < len(p.text) && isSpace(p.text[at]) {
		at++
	}
	return at
}
