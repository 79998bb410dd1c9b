// Package spec is the language: one Go struct for each entity of a document.
//
// The doc comments are the descriptions that the JSON schema, the reference
// pages and editors show. The tags are read by the loader, the validator, the plan
// of a flow and the generators:
//
//   - yaml:"name" is the key in a document;
//   - alias:"name" is an earlier name of the key that is still accepted;
//   - jsonschema:"required" marks a required key;
//   - default:"…" is the value of an absent key, as YAML text;
//   - validate:"…" is a rule on the value, in the form of go-playground/validator;
//   - optional:"a,b" at an embedded struct lists keys of it that are optional here;
//   - without:"a,b" at an embedded struct lists keys of it that do not exist here;
//   - example:"…" is a value for examples, as YAML text;
//   - syntax:"template", "jsonpath", "sql" or "endpoint" is the language of a text;
//   - verbatim:"true" marks a text that models read as it is written, without placeholders;
//   - variables:"typed" marks parameters in which an unquoted ${NAME} may be a number or a boolean;
//   - role:"…" describes what a step or tool does with the entity that a reference names (see Role);
//   - binds:"outputs" marks bindings that set variables of the calling flow;
//   - evaluated:"after" marks a condition that sees the step's outputs;
//   - nonempty:"true" marks a list that must have an item;
//   - arguments:"true" marks further arguments of a tool;
//   - accepts:"…" lists the types of auth that an entity can use;
//   - secret:"name" marks a Secret that is not confidential, secret:"url" one that is only if it has a password,
//     secret:"named" a map of Secrets of which those with the name of a secret are.
//
// Tags of an embedded StepBase describe the type of the step: rows (see Rows), in and
// out (see Signature), streams:"text", writes:"maybe" for a step that may leave its
// outputs as they were, span:"…" (see SpanOf), records:"…" (see RecordAdvice), and without_inputs:"reads_row" for a step
// that without inputs reads the whole row.
//
// The loader fills the values of this package, and package validate links them.
// After that they do not change and may be used concurrently.
package spec

import (
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/spec/source"
)

// Position is the position of a value in its document: a tree of the value's shape.
type Position struct {
	Name  string      // the key, for a field of a mapping
	Key   source.Span // the position of the key; zero for an item of a list
	Value source.Span // the position of the value
	Parts []*Position // the fields of a mapping or the items of a list, in document order

	// Unread reports that the value could not be read completely. The error was
	// reported already, and nothing follows from what is missing.
	Unread bool
}

// Complete reports whether everything under some keys could be read: their values and
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

// whole reports whether a value and its parts could be read.
func (p *Position) whole() bool {
	return !p.Unread && !slices.ContainsFunc(p.Parts, func(part *Position) bool { return part.Unread })
}

// Field returns the position of a key, or the mapping's position if the key is
// absent, so that a diagnostic always has a position. p may be nil.
func (p *Position) Field(name string) *Position {
	if f, ok := p.Lookup(name); ok {
		return f
	}
	return p
}

// Lookup returns the position of a key and reports whether the key is present.
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

// Index returns the position of a list's i-th item, counted from 0; that of the list
// where there is none. It accepts nil.
func (p *Position) Index(i int) *Position {
	if p == nil || i < 0 || i >= len(p.Parts) {
		return p
	}
	return p.Parts[i]
}

// Span returns the value's span, the zero span for a nil Position.
func (p *Position) Span() source.Span {
	if p == nil {
		return source.Span{}
	}
	return p.Value
}

// Unknowns lists what unreadable parts of a document may contain, so that no diagnostic
// reports a consequence of such a part.
type Unknowns struct {
	Declared []reflect.Type // entities that may have been declared there: pointers to structs of this package
	Named    []reflect.Type // what references there may have named, as Reference.TargetType returns it
}

// Positioned is embedded in every entity and holds its position.
type Positioned struct{ position *Position }

// Position returns the entity's position; nil for one made by a Go program.
func (o *Positioned) Position() *Position { return o.position }

// SetPosition is called by the loader, once.
func (o *Positioned) SetPosition(p *Position) { o.position = p }

// Node is anything with a position in a document: entities and their parts.
type Node interface {
	// Position is where the document writes it, nil for what no document holds.
	Position() *Position
	// SetPosition notes that; for the loader, once.
	SetPosition(*Position)
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
