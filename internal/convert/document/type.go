package document

import (
	"cmp"
	"strings"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values.
const (
	Unknown Kind = iota // not inferred yet; becomes Text
	Text
	Int
	Float
	Bool
	Date     // of tools only
	DateTime // of tools only
	List
	Record
	Message // a ChatMessage
	Any     // of tools only: any JSON value
	Bytes   // of tools only: the content of a file
)

// Type is the type of a value as inferred from a schema, a constant, or its use in
// expressions.
type Type struct {
	Kind        Kind     // kind of the value
	Optional    bool     // may be null
	Declared    bool     // from the file; its use in expressions does not change it
	TopLevel    bool     // of a variable, whose lists hold no lists
	Element     bool     // of an element of such a list
	Elem        *Type    // of a list
	Fields      []*Field // of a record
	Name        string   // id of a record's custom type
	Description string   // of a record's custom type
}

// IsFlat reports whether a variable can have the type: it is not a list of lists.
// Fields of records may be.
func (s *Type) IsFlat() bool {
	return s.Kind != List || s.Elem == nil || s.Elem.Kind != List
}

// HasNullableElements reports whether it is a list with nullable elements, which a
// variable cannot have.
func (s *Type) HasNullableElements() bool {
	return s.Kind == List && s.Elem != nil && s.Elem.Optional
}

// VariableType returns the type expression of a variable.
func (s *Type) VariableType() string {
	if !s.HasNullableElements() {
		return s.Text()
	}
	full := *s.Elem
	full.Optional = false
	whole := *s
	whole.Elem = &full
	return whole.Text()
}

// Field is a field of a record.
type Field struct {
	Name string // as in the file
	Type *Type  // nullable if the field may be missing
}

// Field returns the type of a field, nil if there is none.
func (s *Type) Field(name string) *Type {
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Type
		}
	}
	return nil
}

// Text returns the type expression.
func (s *Type) Text() string {
	t := s.BareText()
	if s.Optional {
		t += "?"
	}
	return t
}

// BareText returns the type expression without the question mark of optional types.
func (s *Type) BareText() string {
	switch s.Kind {
	case Int:
		return "int"
	case Float:
		return "float"
	case Bool:
		return "boolean"
	case Date:
		return "date"
	case DateTime:
		return "datetime"
	case List:
		return "list[" + s.Elem.Text() + "]"
	case Record:
		return s.Name
	case Message:
		return "ChatMessage"
	case Any:
		return "any"
	case Bytes:
		return "bytes"
	}
	return "text"
}

// declaration returns the custom type of a record as YAML.
func (s *Type) declaration() *Block {
	b := new(Block).Set("id", s.Name)
	if s.Description != "" {
		b.Set("description", s.Description)
	}
	properties := new(Block)
	for _, f := range s.Fields {
		properties.Set(f.Name, f.Type.Text())
	}
	return b.Set("properties", properties)
}

// Settle makes unknown types strings, names records, and appends new records to
// all: containing records come after the contained ones.
func (s *Type) Settle(ids *IDs, name string, all *[]*Type) {
	switch s.Kind {
	case Unknown:
		s.Kind = Text
	case List:
		if s.Elem == nil {
			s.Elem = &Type{Kind: Text}
		}
		s.Elem.Settle(ids, singular(name), all)
	case Record:
		if s.Name != "" {
			return
		}
		made := cmp.Or(capital(name), "Record")
		for _, f := range s.Fields {
			f.Type.Settle(ids, made+capital(f.Name), all)
		}
		for _, other := range *all {
			if s.Description == other.Description && s.sameFields(other) {
				s.Name = other.Name
				return
			}
		}
		s.Name = ids.New(made, "Record")
		*all = append(*all, s)
	}
}

// sameFields reports whether two settled records have the same fields.
func (s *Type) sameFields(t *Type) bool {
	if len(s.Fields) != len(t.Fields) {
		return false
	}
	for i, f := range s.Fields {
		if f.Name != t.Fields[i].Name || f.Type.Text() != t.Fields[i].Type.Text() {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares nothing with the type.
func (s *Type) Clone() *Type {
	if s == nil {
		return nil
	}
	made := *s
	made.Elem, made.Fields = s.Elem.Clone(), nil
	for _, f := range s.Fields {
		field := *f
		field.Type = f.Type.Clone()
		made.Fields = append(made.Fields, &field)
	}
	return &made
}

// Inline removes the names of records, so that the next pass assigns them again.
func (s *Type) Inline() {
	if s == nil {
		return
	}
	s.Name = ""
	s.Elem.Inline()
	for _, f := range s.Fields {
		f.Type.Inline()
	}
}

// capital returns a name in the spelling of types.
func capital(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(Slug(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// singular returns a name for an element of a list: order for orders.
func singular(name string) string {
	if s, ok := strings.CutSuffix(name, "s"); ok && len(s) > 2 && !strings.HasSuffix(s, "s") {
		return s
	}
	return name + "Item"
}

// Join returns the type of a value that has type a in one place and b in another.
// ok is false if there is none.
func Join(a, b *Type) (joined *Type, ok bool) {
	switch {
	case a == nil || a.Kind == Unknown:
		if a != nil && a.Optional && !b.Optional {
			c := *b
			c.Optional = true
			return &c, true
		}
		return b, true
	case b == nil || b.Kind == Unknown:
		c := *a
		c.Optional = a.Optional || b != nil && b.Optional
		return &c, true
	}
	c := *a
	c.Optional = a.Optional || b.Optional
	switch {
	case a.Kind == Int && b.Kind == Float:
		c.Kind = Float
		return &c, true
	case a.Kind == Float && b.Kind == Int:
		return &c, true
	case a.Kind != b.Kind:
		return a, false
	case a.Kind == List:
		elem, ok := Join(a.Elem, b.Elem)
		c.Elem = elem
		return &c, ok
	case a.Kind == Record:
		return joinRecords(&c, b)
	}
	return &c, true
}

// joinRecords adds the fields of b; fields that only one of the two has become
// optional.
func joinRecords(a, b *Type) (*Type, bool) {
	all := true
	var fields []*Field
	for _, f := range a.Fields {
		of := f.Type
		if theirs := b.Field(f.Name); theirs != nil {
			made, ok := Join(of, theirs)
			of, all = made, all && ok
		} else {
			made := *of
			made.Optional = true
			of = &made
		}
		fields = append(fields, &Field{f.Name, of})
	}
	for _, f := range b.Fields {
		if a.Field(f.Name) == nil {
			made := *f.Type
			made.Optional = true
			fields = append(fields, &Field{f.Name, &made})
		}
	}
	a.Fields = fields
	return a, all
}

// Noun returns the kind as a noun phrase for messages.
func (s Kind) Noun() string {
	names := [...]string{"an unknown value", "a string", "an integer", "a number", "a boolean", "a date", "a datetime", "a list", "a record", "a message", "any value", "bytes"}
	return names[s]
}

// FieldNames returns the names of the fields of a record.
func (s *Type) FieldNames() []string {
	var all []string
	for _, f := range s.Fields {
		all = append(all, f.Name)
	}
	return all
}
