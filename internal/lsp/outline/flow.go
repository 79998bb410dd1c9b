package outline

import "strings"

// brackets reads a collection in brackets, which may span lines and may not be
// closed yet, and returns the offset after it. column is that of the key or dash
// before it.
func (p *parser) brackets(to *Node, at, column int) int {
	to.Kind, to.Flow, to.Start = Sequence, true, at
	closing := byte(']')
	if p.text[at] == '{' {
		to.Kind, closing = Mapping, '}'
	}
	p.flowDepth++
	defer func() { p.flowDepth-- }()
	at++
	for {
		at = p.skipFlow(at, column)
		if p.flowEnds(at, column) || p.flowDepth > MaxDepth {
			to.End = at
			return at
		}
		switch p.text[at] {
		case closing:
			to.End = at + 1
			return at + 1
		case ']', '}': // closes an outer collection: this one is unclosed
			to.End = at
			return at
		case ',':
			at++
		default:
			at = p.flowEntry(to, at, column)
		}
	}
}

// skipFlow skips white space and comments on lines that belong to the brackets.
func (p *parser) skipFlow(at, column int) int {
	for at < len(p.text) {
		switch {
		case p.text[at] == '\n' && p.isOutdented(at+1, column):
			return at
		case isBlank(p.text[at]):
			at++
		case p.isComment(at):
			at = p.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// flowEnds reports whether the end of the text or the indentation of the next
// line ends the open brackets.
func (p *parser) flowEnds(at, column int) bool {
	return at >= len(p.text) || p.text[at] == '\n' && p.isOutdented(at+1, column)
}

// isOutdented reports whether a line is indented too little to belong to brackets
// after a key at column, and does not close them.
func (p *parser) isOutdented(at, column int) bool {
	end := p.lineEnd(at)
	line := p.text[at:end]
	content := strings.TrimLeft(line, " \t")
	return content != "" && len(line)-len(content) <= column && content[0] != ']' && content[0] != '}' && content[0] != '#'
}

// flowEntry reads one entry within brackets and returns the offset after it.
func (p *parser) flowEntry(to *Node, at, column int) int {
	first := &Node{Start: at, End: at}
	next := p.flowValue(first, at, column)
	if next == at {
		return at + 1 // no entry starts with this character
	}
	after := p.skipSpaces(next)
	isPair := after < len(p.text) && p.text[after] == ':' && first.Kind == Scalar
	if to.Kind == Sequence && !isPair {
		to.Items = append(to.Items, first)
		return next
	}
	pair := &Pair{Key: first.Text, Start: first.Start, End: first.End, Colon: isPair, Value: &Node{Start: next, End: next}}
	if isPair {
		next = p.skipFlow(after+1, column)
		pair.Value.Start, pair.Value.End = next, next
		if !p.flowEnds(next, column) && !strings.ContainsRune(",]}", rune(p.text[next])) {
			next = max(p.flowValue(pair.Value, next, column), next+1)
		}
	}
	if to.Kind == Mapping {
		to.Pairs = append(to.Pairs, pair)
		return next
	}
	to.Items = append(to.Items, &Node{Kind: Mapping, Flow: true, Start: pair.Start, End: next, Pairs: []*Pair{pair}})
	return next
}

// flowValue reads one value within brackets and returns the offset after it.
func (p *parser) flowValue(to *Node, at, column int) int {
	at = p.properties(to, at)
	if at >= len(p.text) {
		return at
	}
	switch p.text[at] {
	case '{', '[':
		return p.brackets(to, at, column)
	case '"', '\'':
		p.quoted(to, at)
		return to.End
	}
	end := at
	for end < len(p.text) && !strings.ContainsRune(",[]{}\n\r", rune(p.text[end])) && !p.isFlowColon(end) && !p.isComment(end) {
		end++
	}
	for end > at && isSpace(p.text[end-1]) {
		end--
	}
	if end > at {
		p.scalar(to, at, end, Plain)
	}
	return end
}

// isFlowColon reports whether a colon at the offset separates a key from its
// value within brackets.
func (p *parser) isFlowColon(at int) bool {
	return p.text[at] == ':' && (at+1 == len(p.text) || strings.ContainsRune(" \t\n\r,[]{}", rune(p.text[at+1])))
}
