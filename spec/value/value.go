// Package value implements the run-time values of the language: it reads them from
// JSON, cells of files and Go values, coerces them to declared types, and formats
// them as JSON and text.
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
//	Decimal              the same for numbers of files and databases that are exact
//
// Values are immutable, so rows may share them.
package value

import (
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// UnsetType is the type of Unset.
type UnsetType uint8

// Unset is the value of a variable that was never set; null is nil.
const Unset UnsetType = 0

// String returns "unset".
func (UnsetType) String() string { return "unset" }

// Record is a value with named fields in a fixed order. The zero Record is empty.
type Record struct {
	typ    string  // name of the type; empty for a free-form object
	fields []Field // in the order of the declaration or of the JSON text
}

// Field is a field of a Record.
type Field struct {
	Name  string // name of the field
	Value any    // a run-time value
}

// NewRecord returns a record of the named type, or a free-form object for an empty
// type. The names of the fields must be unique.
func NewRecord(typ string, fields ...Field) *Record {
	return &Record{typ: typ, fields: fields}
}

// Type returns the name of the record's type, "" for a free-form object.
func (r *Record) Type() string { return r.typ }

// Len returns the number of fields.
func (r *Record) Len() int { return len(r.fields) }

// Get returns the value of a field, and whether there is a field with the name.
func (r *Record) Get(name string) (any, bool) {
	for i := range r.fields {
		if r.fields[i].Name == name {
			return r.fields[i].Value, true
		}
	}
	return nil, false
}

// All iterates over the fields in order.
func (r *Record) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, f := range r.fields {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

// Names returns the names of the fields in order.
func (r *Record) Names() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.Name
	}
	return names
}

// MarshalJSON returns the fields in order. It never fails.
func (r *Record) MarshalJSON() ([]byte, error) { return JSON(r), nil }

// String returns the record as JSON.
func (r *Record) String() string { return string(JSON(r)) }

// With returns a copy with a field set; a new field is the last.
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

// ParseCell is the text of a cell of a CSV or TSV file. Coerce reads it as a
// string, except that an empty cell is null if the type is optional and not text,
// and that lists and records are read as JSON.
type ParseCell string

// AnswerText returns what a model answered without what is around it: a byte order mark,
// reasoning up to </think>, and a code fence around the whole rest.
func AnswerText(text string) string {
	const bom = "\ufeff"
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), bom))
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return text // which may have any text in its strings
	}
	if thought, after, found := strings.Cut(text, "</think>"); found && (strings.HasPrefix(thought, "<think>") || !strings.Contains(thought, "<think>")) {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), bom))
	}
	inside, fenced := strings.CutPrefix(text, "```")
	if inside, closed := strings.CutSuffix(inside, "```"); fenced && closed && !strings.Contains(inside, "```") {
		label, body, _ := strings.Cut(inside, "\n")
		if strings.ContainsAny(label, "{<[") { // no label: the answer begins on the line of the fence
			body = inside
		}
		text = strings.TrimSpace(body)
	}
	return text
}

// Member is a field of a record type.
type Member struct {
	Name string    // the field's name
	Type spec.Type // its type; spec.Any for free-form content
}

// Members returns the fields of a custom type or of a domain type, in order. It returns
// nil for types whose values are not records with fixed fields, as ChatMessage.
func Members(t spec.Type) []Member {
	if t.Elem != nil {
		return nil
	}
	var all []Member
	if t.Custom != nil {
		for _, p := range t.Custom.Properties {
			all = append(all, Member{p.Name, p.Type})
		}
		return all
	}
	for _, m := range members(t.Name) {
		all = append(all, Member{m.name, m.typ})
	}
	return all
}
