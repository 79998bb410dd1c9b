// Package value is what travels in a flow's rows: run-time values, how they are
// made from JSON, from the cells of a file and from Go values, how they are
// coerced to the types that a document declares, and how they are written out.
//
// A value is one of
//
//	nil                  null
//	string               text, MessageRole, citations given as text
//	int64, float64, bool int, float, boolean
//	[]byte               bytes, file, image, audio, video
//	Date, DateTime, Time date, datetime, time
//	chat.Message         ChatMessage
//	[]any                a list
//	*Record              a custom type, a domain type, any other JSON object
//	json.Number          a number that neither int64 nor float64 can hold, in free-form content only
//
// Values are never changed once made, so rows may share them.
package value

import (
	"iter"
	"slices"
)

// UnsetType is the type of Unset.
type UnsetType uint8

// Unset stands in a slot where nothing was ever set; null is nil.
const Unset UnsetType = 0

// String is what a person is shown.
func (UnsetType) String() string { return "unset" }

// Record is a value with named fields in a fixed order. The zero Record has none.
type Record struct {
	typ    string  // the type's name, empty for a free-form object
	fields []Field // in the order of the declaration, or of the JSON text
}

// Field is one named value of a Record.
type Field struct {
	Name  string // the field's name
	Value any    // its value
}

// NewRecord makes a record of the named type; an empty type makes a free-form
// object. The fields' names must differ.
func NewRecord(typ string, fields ...Field) *Record {
	return &Record{typ: typ, fields: fields}
}

// Type is the name of the record's type, empty for a free-form object.
func (r *Record) Type() string { return r.typ }

// Len is how many fields there are.
func (r *Record) Len() int { return len(r.fields) }

// Get is the value of a field and whether there is one of that name.
func (r *Record) Get(name string) (any, bool) {
	for i := range r.fields {
		if r.fields[i].Name == name {
			return r.fields[i].Value, true
		}
	}
	return nil, false
}

// All ranges over the fields in their order.
func (r *Record) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, f := range r.fields {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

// Names lists the fields' names in their order.
func (r *Record) Names() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.Name
	}
	return names
}

// MarshalJSON writes the fields in their order; it never fails.
func (r *Record) MarshalJSON() ([]byte, error) { return JSON(r), nil }

// String is the record as JSON.
func (r *Record) String() string { return string(JSON(r)) }

// With is a copy in which a field has another value; a new name goes to the end.
func (r *Record) With(name string, v any) *Record {
	c := &Record{typ: r.typ, fields: slices.Clone(r.fields)}
	i := slices.IndexFunc(c.fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		c.fields = append(c.fields, Field{name, v})
	} else {
		c.fields[i].Value = v
	}
	return c
}

// ParseCell is the text of one cell of a CSV or TSV file. Coerce reads it as a
// string, with two differences: an empty cell is null where the type is
// optional and not a text, and where a list or a record is declared the cell
// holds it as JSON.
type ParseCell string
