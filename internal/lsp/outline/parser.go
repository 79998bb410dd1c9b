package outline

import "strings"

// blockLevel is an open block collection.
type blockLevel struct {
	indent int
	node   *Node
}

// parser is the state of one Parse call.
type parser struct {
	text      string
	at        int // offset of the next line or entry to read
	root      *Node
	open      []blockLevel // the open collections, innermost last
	flowDepth int          // how many brackets are open
}

// line reads from the start of a line up to the start of a later one. It returns
// false at the end of the document.
func (p *parser) line() bool {
	start := p.at
	end := p.lineEnd(start)
	rest := p.text[start:end]
	content := strings.TrimLeft(rest, " \t")
	switch {
	case content == "" || content[0] == '#':
		p.at = p.nextLine(end)
		return true
	case strings.HasPrefix(rest, "---") && isBlankAt(rest, 3):
		if p.root.Kind != Empty {
			return false // a second document
		}
		p.at = p.nextLine(end)
		return true
	case strings.HasPrefix(rest, "...") && isBlankAt(rest, 3):
		return false
	case rest[0] == '%' && p.root.Kind == Empty:
		p.at = p.nextLine(end)
		return true
	}
	p.entries(start, start+len(rest)-len(content))
	return true
}

// entries reads the content of a line, which may open several collections:
// "- - key: value".
func (p *parser) entries(lineStart, at int) {
	for {
		column := at - lineStart
		end := p.lineEnd(at)
		if p.text[at] == '-' && isBlankAt(p.text[:end], at+1) {
			item := p.item(at, column)
			next := p.skipSpaces(at + 1)
			if next >= end || p.isComment(next) {
				p.at = p.nextLine(end)
				return
			}
			if p.isEntry(next, end) && len(p.open) < MaxDepth {
				at = next
				continue
			}
			p.value(item, next, column)
			return
		}
		keyEnd, ok := p.keyAt(at, end)
		if !ok {
			p.scalarLine(at, column)
			return
		}
		pair := p.pair(at, keyEnd, column)
		pair.Colon = true
		colon := p.skipSpaces(keyEnd)
		p.value(pair.Value, colon+1, column)
		return
	}
}

// isEntry reports whether a list item or a key starts at the offset.
func (p *parser) isEntry(at, end int) bool {
	if p.text[at] == '-' && isBlankAt(p.text[:end], at+1) {
		return true
	}
	_, ok := p.keyAt(at, end)
	return ok
}

// keyAt returns the end of the key at the offset. A key is followed by a colon
// and white space.
func (p *parser) keyAt(at, end int) (keyEnd int, ok bool) {
	for at < end && strings.IndexByte("&!*", p.text[at]) >= 0 { // properties of a value, rarely of a key
		for at < end && !isBlank(p.text[at]) {
			at++
		}
		at = p.skipSpaces(at)
	}
	if at >= end {
		return 0, false
	}
	switch p.text[at] {
	case '"', '\'':
		closed := p.quoteEnd(at)
		if closed > end {
			return 0, false
		}
		colon := p.skipSpaces(closed)
		return closed, colon < end && p.text[colon] == ':' && isBlankAt(p.text[:end], colon+1)
	case '{', '[', '|', '>', '#', '%', '@', '`':
		return 0, false
	}
	for i := at; i < end; i++ {
		switch {
		case p.text[i] == ':' && isBlankAt(p.text[:end], i+1):
			keyEnd = i
			for keyEnd > at && isSpace(p.text[keyEnd-1]) {
				keyEnd--
			}
			return keyEnd, keyEnd > at
		case p.text[i] == '#' && i > at && isSpace(p.text[i-1]):
			return 0, false
		}
	}
	return 0, false
}

// innermost returns the innermost open collection, or nil.
func (p *parser) innermost() *blockLevel {
	if len(p.open) == 0 {
		return nil
	}
	return &p.open[len(p.open)-1]
}

// closeDeeper closes the collections that are indented deeper than column and
// returns the innermost one that stays open.
func (p *parser) closeDeeper(column int) *blockLevel {
	for t := p.innermost(); t != nil && t.indent > column; t = p.innermost() {
		p.open = p.open[:len(p.open)-1]
	}
	return p.innermost()
}

// currentSlot returns the node that the next value fills: the last value of the
// innermost collection, or the root if none is open.
func (p *parser) currentSlot() *Node {
	t := p.innermost()
	switch {
	case t == nil:
		return p.root
	case t.node.Kind == Sequence:
		return t.node.Items[len(t.node.Items)-1]
	}
	return t.node.Pairs[len(t.node.Pairs)-1].Value
}

// enter finds or opens the collection that an entry at a column belongs to.
func (p *parser) enter(want Kind, at, column int) *Node {
	t := p.closeDeeper(column)
	if t != nil && t.indent == column && t.node.Kind == Sequence && want == Mapping && len(p.open) > 1 {
		// A list may be at the same column as its key.
		if below := p.open[len(p.open)-2]; below.indent == column {
			p.open = p.open[:len(p.open)-1]
			t = p.innermost()
		}
	}
	if t != nil && t.indent == column && t.node.Kind == want {
		return t.node
	}
	slot := p.currentSlot()
	switch {
	case slot.Kind == want && !slot.Flow: // an entry with another indentation than its siblings
	case slot.Kind == Empty:
		slot.Kind, slot.Start, slot.End, slot.Indent = want, at, at, column
	default:
		slot = &Node{Kind: want, Start: at, End: at, Indent: column} // belongs to nothing
	}
	p.open = append(p.open, blockLevel{column, slot})
	return slot
}

// item adds a list item.
func (p *parser) item(at, column int) *Node {
	list := p.enter(Sequence, at, column)
	n := &Node{Start: at + 1, End: at + 1, Dash: at}
	list.Items = append(list.Items, n)
	p.extendOpen(at + 1)
	return n
}

// pair adds a key.
func (p *parser) pair(at, end, column int) *Pair {
	m := p.enter(Mapping, at, column)
	pair := &Pair{Key: unquote(p.text[at:end]), Start: at, End: end, Value: &Node{Start: end, End: end}}
	m.Pairs = append(m.Pairs, pair)
	p.extendOpen(end)
	return pair
}

// extendOpen moves the ends of the open collections to the offset or beyond.
func (p *parser) extendOpen(end int) {
	for i := range p.open {
		p.open[i].node.End = max(p.open[i].node.End, end)
	}
}

// scalarLine reads a line that is neither a list item nor a key with a colon: a
// value below its key, the continuation of one, or a key that is being typed.
func (p *parser) scalarLine(at, column int) {
	t := p.closeDeeper(column)
	slot := p.currentSlot()
	end := p.plainEnd(at, p.lineEnd(at))
	next := p.nextLine(p.lineEnd(at))
	switch {
	case t != nil && t.indent == column && t.node.Kind == Mapping:
		p.pair(at, end, column)
	case slot.Kind == Empty && (t == nil || t.indent < column):
		p.value(slot, at, -1)
		return
	case slot.Kind == Scalar && slot.Style == Plain && t != nil && t.indent < column:
		slot.Text += " " + p.text[at:end]
		slot.End = end
		p.extendOpen(end)
	case slot.Kind == Mapping && !slot.Flow:
		p.pair(at, end, column) // a key with another indentation than its siblings
	}
	p.at = next
}

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
