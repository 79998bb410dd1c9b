package lsp

import (
	"strings"
)

// kind is what a value of an outline is.
type kind uint8

const (
	nothing  kind = iota // no value yet
	scalar               // a single value
	mapping              // keys and values
	sequence             // a list
)

// style is how a scalar is written.
type style uint8

const (
	plain  style = iota
	single       // '…'
	double       // "…"
	block        // | or >
	alias        // *name
)

// node is a value of an outline. Places are byte offsets.
type node struct {
	kind       kind
	start, end int    // the value; of a scalar its quotes included
	text       string // a scalar's value, as far as an outline needs it
	style      style
	tag        string  // !include and the like
	flow       bool    // a collection in brackets
	indent     int     // the column of a block collection
	pairs      []*pair // of a mapping
	items      []*node // of a sequence
	dash       int     // of an item of a block sequence: where its dash stands
}

// pair is a key with its value.
type pair struct {
	key        string
	start, end int   // the key, its quotes included
	colon      bool  // a colon follows; without one somebody is still typing
	value      *node // never nil
}

// get finds the value of a key; nil where it is absent.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key == key && p.colon {
			return p.value
		}
	}
	return nil
}

// word is the text of the scalar under a key, empty where there is none.
func (n *node) word(key string) string {
	if v := n.get(key); v != nil && v.kind == scalar {
		return v.text
	}
	return ""
}

// outline is the shape of a text that may be broken YAML: reading it never
// fails, it only understands less.
type outline struct {
	root *node
}

// level is an open block collection.
type level struct {
	indent int
	of     *node
}

// outlineParser reads lines into an outline.
type outlineParser struct {
	text  string
	at    int // the offset of what is read next
	root  *node
	open  []level // the open collections, innermost last
	depth int     // levels of brackets
}

// maxLevels bounds the nesting that an outline follows.
const maxLevels = 200

// parseOutline reads any text.
func parseOutline(text string) *outline {
	s := &outlineParser{text: text, root: &node{}}
	for s.at < len(text) {
		if !s.line() {
			break
		}
	}
	return &outline{root: s.root}
}

// line reads from the start of a line up to the start of another, and tells
// whether the document goes on.
func (s *outlineParser) line() bool {
	start := s.at
	end := s.lineEnd(start)
	rest := s.text[start:end]
	content := strings.TrimLeft(rest, " \t")
	switch {
	case content == "" || content[0] == '#':
		s.at = s.next(end)
		return true
	case strings.HasPrefix(rest, "---") && blankAt(rest, 3):
		if s.root.kind != nothing {
			return false // a second document
		}
		s.at = s.next(end)
		return true
	case strings.HasPrefix(rest, "...") && blankAt(rest, 3):
		return false
	case rest[0] == '%' && s.root.kind == nothing:
		s.at = s.next(end)
		return true
	}
	s.entries(start, start+len(rest)-len(content))
	return true
}

// entries reads what stands on one line, which may open several collections:
// "- - key: value".
func (s *outlineParser) entries(lineStart, at int) {
	for {
		column := at - lineStart
		end := s.lineEnd(at)
		if s.text[at] == '-' && blankAt(s.text[:end], at+1) {
			item := s.item(at, column)
			next := s.skipSpaces(at + 1)
			if next >= end || s.comment(next) {
				s.at = s.next(end)
				return
			}
			if s.isEntry(next, end) && len(s.open) < maxLevels {
				at = next
				continue
			}
			s.value(item, next, column)
			return
		}
		keyEnd, ok := s.keyAt(at, end)
		if !ok {
			s.scalarLine(at, column)
			return
		}
		p := s.pair(at, keyEnd, column)
		p.colon = true
		colon := s.skipSpaces(keyEnd)
		s.value(p.value, colon+1, column)
		return
	}
}

// isEntry tells whether a list item or a key starts at an offset.
func (s *outlineParser) isEntry(at, end int) bool {
	if s.text[at] == '-' && blankAt(s.text[:end], at+1) {
		return true
	}
	_, ok := s.keyAt(at, end)
	return ok
}

// keyAt reads a key up to its colon, which must be followed by a blank.
func (s *outlineParser) keyAt(at, end int) (keyEnd int, ok bool) {
	for at < end && strings.IndexByte("&!*", s.text[at]) >= 0 { // before a value; rarely before a key
		for at < end && !isBlank(s.text[at]) {
			at++
		}
		at = s.skipSpaces(at)
	}
	if at >= end {
		return 0, false
	}
	switch s.text[at] {
	case '"', '\'':
		closed := s.quoteEnd(at)
		if closed > end {
			return 0, false
		}
		colon := s.skipSpaces(closed)
		return closed, colon < end && s.text[colon] == ':' && blankAt(s.text[:end], colon+1)
	case '{', '[', '|', '>', '#', '%', '@', '`':
		return 0, false
	}
	for i := at; i < end; i++ {
		switch {
		case s.text[i] == ':' && blankAt(s.text[:end], i+1):
			keyEnd = i
			for keyEnd > at && isSpace(s.text[keyEnd-1]) {
				keyEnd--
			}
			return keyEnd, keyEnd > at
		case s.text[i] == '#' && i > at && isSpace(s.text[i-1]):
			return 0, false
		}
	}
	return 0, false
}

// top is the innermost open collection.
func (s *outlineParser) top() *level {
	if len(s.open) == 0 {
		return nil
	}
	return &s.open[len(s.open)-1]
}

// currentSlot is the place that the innermost collection waits to have filled: its
// last value; the root where nothing is open.
func (s *outlineParser) currentSlot() *node {
	t := s.top()
	switch {
	case t == nil:
		return s.root
	case t.of.kind == sequence:
		return t.of.items[len(t.of.items)-1]
	}
	return t.of.pairs[len(t.of.pairs)-1].value
}

// enter finds or opens the collection of a kind that an entry at a column belongs to.
func (s *outlineParser) enter(want kind, at, column int) *node {
	for t := s.top(); t != nil && t.indent > column; t = s.top() {
		s.open = s.open[:len(s.open)-1]
	}
	t := s.top()
	if t != nil && t.indent == column && t.of.kind == sequence && want == mapping && len(s.open) > 1 {
		// A list may stand as far left as the key that holds it.
		if below := s.open[len(s.open)-2]; below.indent == column {
			s.open = s.open[:len(s.open)-1]
			t = s.top()
		}
	}
	if t != nil && t.indent == column && t.of.kind == want {
		return t.of
	}
	slot := s.currentSlot()
	switch {
	case slot.kind == want && !slot.flow: // an entry that is indented otherwise than those before it
	case slot.kind == nothing:
		slot.kind, slot.start, slot.end, slot.indent = want, at, at, column
	default:
		slot = &node{kind: want, start: at, end: at, indent: column} // nowhere to go
	}
	s.open = append(s.open, level{column, slot})
	return slot
}

// item adds a list item.
func (s *outlineParser) item(at, column int) *node {
	list := s.enter(sequence, at, column)
	made := &node{start: at + 1, end: at + 1, dash: at}
	list.items = append(list.items, made)
	s.extendOpen(at + 1)
	return made
}

// pair adds a key.
func (s *outlineParser) pair(at, end, column int) *pair {
	m := s.enter(mapping, at, column)
	p := &pair{key: unquote(s.text[at:end]), start: at, end: end, value: &node{start: end, end: end}}
	m.pairs = append(m.pairs, p)
	s.extendOpen(end)
	return p
}

// extendOpen lets the open collections end no earlier than at an offset.
func (s *outlineParser) extendOpen(end int) {
	for i := range s.open {
		s.open[i].of.end = max(s.open[i].of.end, end)
	}
}

// scalarLine reads text that is neither a list item nor a key with a colon: a value
// on a line of its own, the next line of one, or a key that is being typed.
func (s *outlineParser) scalarLine(at, column int) {
	for t := s.top(); t != nil && t.indent > column; t = s.top() {
		s.open = s.open[:len(s.open)-1]
	}
	slot, t := s.currentSlot(), s.top()
	switch {
	case t != nil && t.indent == column && t.of.kind == mapping:
		end := s.plainEnd(at, s.lineEnd(at))
		s.pair(at, end, column)
		s.at = s.next(s.lineEnd(at))
	case slot.kind == nothing && (t == nil || t.indent < column):
		s.value(slot, at, -1)
	case slot.kind == scalar && slot.style == plain && t != nil && t.indent < column:
		end := s.plainEnd(at, s.lineEnd(at))
		slot.text += " " + s.text[at:end]
		slot.end = end
		s.extendOpen(end)
		s.at = s.next(s.lineEnd(at))
	case slot.kind == mapping && !slot.flow:
		// Indented otherwise than the keys before it; still a key of the same mapping.
		end := s.plainEnd(at, s.lineEnd(at))
		s.pair(at, end, column)
		s.at = s.next(s.lineEnd(at))
	default:
		s.at = s.next(s.lineEnd(at))
	}
}
