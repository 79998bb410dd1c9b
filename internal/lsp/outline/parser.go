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
