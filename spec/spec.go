// Package spec is the language: one Go struct for each entity of a document.
//
// The doc comments are the descriptions that the JSON schema, the reference
// pages and the editor show. The tags are read by the loader, the validator and
// the schema generator alike:
//
//   - yaml:"name" is the key in a document;
//   - jsonschema:"required" marks a key that must be there;
//   - default:"…" is the value where the key is absent, as YAML text;
//   - validate:"…" is a rule of go-playground/validator on the value;
//   - optional:"a,b" at an embedded struct lists keys of it that may be left out here;
//   - without:"a,b" at an embedded struct lists keys of it that do not exist here.
//
// Spec values are filled by the loader, linked by validate and read by
// everybody else; after linking nothing changes them, so they may be shared.
package spec

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec/source"
)

// Position is where a value stands in its document: a tree of the value's shape.
type Position struct {
	Name  string      // the key, for a field of a mapping
	Key   source.Span // the key's own place; zero for an item of a list
	Value source.Span // the value's place
	Parts []*Position // the fields of a mapping or the items of a list, in document order

	// Unread says that the value could not be read, or not as a whole; its fault is
	// told already, and nothing is to be concluded from what is not there.
	Unread bool
}

// Complete tells whether everything under some keys could be read: their values and
// the items of those. A key that is absent is. It accepts nil.
func (p *Position) Complete(keys ...string) bool {
	if p == nil {
		return true
	}
	for _, f := range p.Parts {
		if slices.Contains(keys, f.Name) && !f.whole() {
			return false
		}
	}
	return !p.Unread
}

// whole tells whether a value and its parts could be read.
func (p *Position) whole() bool {
	return !p.Unread && !slices.ContainsFunc(p.Parts, func(part *Position) bool { return part.Unread })
}

// Field finds the place of a key. Where the key is absent it answers the
// mapping's own place, so that a fault always has one. It accepts nil.
func (p *Position) Field(name string) *Position {
	if f, ok := p.Lookup(name); ok {
		return f
	}
	return p
}

// Lookup finds the place of a key and tells whether the key is there.
func (p *Position) Lookup(name string) (*Position, bool) {
	if p == nil {
		return nil, false
	}
	for _, f := range p.Parts {
		if f.Name == name && !f.Key.IsZero() {
			return f, true
		}
	}
	return nil, false
}

// Index finds the place of a list's i-th item, counted from 0; the list's own
// where there is none. It accepts nil.
func (p *Position) Index(i int) *Position {
	if p == nil || i < 0 || i >= len(p.Parts) {
		return p
	}
	return p.Parts[i]
}

// Span is the value's place, the zero span for a nil Place.
func (p *Position) Span() source.Span {
	if p == nil {
		return source.Span{}
	}
	return p.Value
}

// Unknowns tell what the parts of a document that could not be read may have held,
// so that nobody complains of what follows from that.
type Unknowns struct {
	Declared []reflect.Type // entities that may have been declared there: pointers to structs of this package
	Named    []reflect.Type // what references there may have named, as Reference.TargetType answers it
}

// Positioned is embedded in every entity and tells where it was written.
type Positioned struct{ place *Position }

// Place is the entity's place; nil for one made by a Go program.
func (o *Positioned) Place() *Position { return o.place }

// SetPlace is called by the loader, once.
func (o *Positioned) SetPlace(p *Position) { o.place = p }

// Node is anything with a place in a document: entities and their plain parts.
type Node interface {
	// Place is where the document writes it, nil for what no document holds.
	Place() *Position
	// SetPlace notes that; for the loader, once.
	SetPlace(*Position)
}

// Entity is a node with an id that references can name.
type Entity interface {
	Node
	// EntityID is the id as the document gives it.
	EntityID() string
	// Kind is what it is.
	Kind() Kind
}

// Kind is what an entity is, in a user's words.
type Kind string

// The kinds of entities.
const (
	KindApplication   Kind = "application"
	KindAuth          Kind = "auth"
	KindFlow          Kind = "flow"
	KindIndex         Kind = "index"
	KindMemory        Kind = "memory"
	KindModel         Kind = "model"
	KindSecretManager Kind = "secret manager"
	KindStep          Kind = "step"
	KindStore         Kind = "store"
	KindTelemetry     Kind = "telemetry sink"
	KindTool          Kind = "tool"
	KindType          Kind = "type"
	KindVariable      Kind = "variable"
)
