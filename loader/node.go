package loader

import (
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// kind is the type of a value of the tree.
type kind uint8

const (
	broken   kind = iota // invalid; already reported
	null                 // no value
	boolean              // a boolean of YAML 1.1
	integer              // an integer of YAML 1.1
	float                // another number of YAML 1.1
	text                 // a text, including dates and times
	sequence             // a list
	mapping              // keys and values
)

// node is a value of a document after includes, aliases, merges and environment
// variables. An alias shares the node of its target, so the tree is an acyclic graph.
type node struct {
	kind   kind
	text   string      // a scalar's text
	source string      // a scalar's text before environment variables were expanded
	unset  bool        // text contains an unset variable, or one of another form
	tag    string      // the explicit tag of a scalar, such as !!float
	date   bool        // the text is a date of YAML 1.1
	shared bool        // an alias refers to it
	bare   bool        // a scalar without quotes and tag
	hidden string      // of a null: what follows the key in place of a value, such as a comment; empty for nothing
	raw    bool        // text is the content of a file, by !include_raw
	span   source.Span // the position of the value
	items  []*node     // of a sequence
	pairs  []pair      // of a mapping, each key once
	size   int         // number of values, aliases expanded
	height int         // nesting depth

	made   *spec.Position   // the result of place
	places []*spec.Position // the positions of the keys of the value
	unread bool             // it could not be decoded completely
}

// markInvalid marks a value whose error was already reported.
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

// get returns the value of a key, nil if it is absent.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// isBare reports whether a scalar without quotes is a number, a boolean or a date.
func (n *node) isBare() bool {
	return n.kind == integer || n.kind == float || n.kind == boolean || n.kind == text && n.date
}

// has reports whether a key exists.
func (n *node) has(key string) bool { return n.get(key) != nil }

// shown returns the text of a scalar for messages. A value from the environment may
// be secret, so its ${NAME} is shown instead.
func (n *node) shown() string { return n.source }

// place returns the positions of the value and its parts, for spec values.
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

// head returns the span of a diagnostic about the whole value: the start of a value
// that spans several lines.
func (n *node) head() source.Span {
	if n.kind == mapping || n.kind == sequence {
		return pointAt(n.span.File, n.span.Start)
	}
	return n.span
}

// noun names a kind in messages.
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

// grow adds the size of a part.
func (n *node) grow(part *node) {
	n.size += part.size
	n.height = max(n.height, part.height)
}
