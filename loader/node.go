package loader

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// kind is what a value of the tree is.
type kind uint8

const (
	broken   kind = iota // could not be made; the found is reported already, so nothing more is said of it
	null                 // no value
	boolean              // a truth value, by YAML 1.1
	integer              // a whole number, by YAML 1.1
	float                // another number, by YAML 1.1
	text                 // a text; dates and times of day too
	sequence             // a list
	mapping              // keys and values
)

// node is a value of a document after includes, aliases, merges and environment
// variables. An alias shares its target's node, so the tree is a graph without circles.
type node struct {
	kind   kind
	text   string      // a scalar's text
	source string      // a scalar's text before environment variables were set in; equal to text mostly
	unset  bool        // text still holds a variable that is not set
	tag    string      // the tag that is written before a scalar, such as !!float
	date   bool        // YAML 1.1 reads the text as a date, as it is written
	shared bool        // an alias names it
	raw    bool        // text is another file's, by !include_raw
	span   source.Span // the value's place
	items  []*node     // of a sequence
	pairs  []pair      // of a mapping, each key once
	size   int         // how many values it is, aliases spelt out
	height int         // how many levels it has

	made   *spec.Position   // the answer of place
	places []*spec.Position // the places of the keys that hold the value
	unread bool             // it could not be read as what it should be, or not as a whole
}

// markInvalid notes that the value could not be read, which is told already.
func (n *node) markInvalid() {
	n.unread = true
	if n.made != nil {
		n.made.Unread = true
	}
	for _, p := range n.places {
		p.Unread = true
	}
}

// pair is a key and its value.
type pair struct{ key, value *node }

// get finds the value of a key; nil where it is absent.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// isBare tells whether a scalar is a number, a truth value or a date, for want of quotes.
func (n *node) isBare() bool {
	return n.kind == integer || n.kind == float || n.kind == boolean || n.kind == text && n.date
}

// has tells whether a key is there.
func (n *node) has(key string) bool { return n.get(key) != nil }

// shown is a scalar's text as it may be printed: a value that came from the
// environment may be secret, so its ${NAME} stands for it.
func (n *node) shown() string { return n.source }

// place is the tree of places that spec values keep.
func (n *node) place() *spec.Position {
	if n.made != nil {
		return n.made
	}
	n.unread = n.unread || n.kind == broken
	n.made = &spec.Position{Value: n.span, Unread: n.unread}
	parts := make([]spec.Position, len(n.pairs)+len(n.items))
	n.made.Parts = make([]*spec.Position, 0, len(parts))
	for i, p := range n.pairs {
		value := p.value.place()
		parts[i] = spec.Position{Name: p.key.text, Key: p.key.span, Value: value.Value, Parts: value.Parts, Unread: value.Unread}
		p.value.places = append(p.value.places, &parts[i])
		n.made.Parts = append(n.made.Parts, &parts[i])
	}
	for _, item := range n.items {
		n.made.Parts = append(n.made.Parts, item.place())
	}
	return n.made
}

// head is the mark of a value that is at found as a whole: one that spans
// several lines is marked where it starts.
func (n *node) head() source.Span {
	if n.kind == mapping || n.kind == sequence {
		return pointAt(n.span.File, n.span.Start)
	}
	return n.span
}

// noun names a kind for a user.
func (k kind) noun() string {
	switch k {
	case null:
		return "nothing"
	case boolean:
		return "a truth value"
	case integer, float:
		return "a number"
	case sequence:
		return "a list"
	case mapping:
		return "a mapping"
	}
	return "a text"
}

// grow counts a part.
func (n *node) grow(part *node) {
	n.size += part.size
	n.height = max(n.height, part.height)
}
