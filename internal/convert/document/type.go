package document

import (
	"cmp"
	"strings"
)

// Kind is what a value of a shape is.
type Kind uint8

const (
	Unknown Kind = iota // nothing is known; it becomes a text
	Text
	Int
	Float
	Bool
	Date     // a date, for tools
	DateTime // a moment, for tools
	List
	Record
	Message // a ChatMessage
)

// Type is what is known of a value: from a schema, from a constant, or from how
// expressions use it. It becomes a type of the document.
type Type struct {
	Kind        Kind
	Optional    bool     // it may be null
	Declared    bool     // the file says it: how it is used changes nothing
	TopLevel    bool     // it is of a variable, whose lists hold no lists
	Element     bool     // it is of an element of such a list
	Elem        *Type    // of a list
	Fields      []*Field // of a record
	Name        string   // of a record: its type's id
	Description string   // of a record: its type's description
}

// IsFlat tells whether a variable can be of the shape: its lists hold no lists, as
// those inside of records may.
func (s *Type) IsFlat() bool {
	return s.Kind != List || s.Elem == nil || s.Elem.Kind != List
}

// HasNullableElements tells whether it is a list some of whose elements may be null, which a
// variable's cannot.
func (s *Type) HasNullableElements() bool {
	return s.Kind == List && s.Elem != nil && s.Elem.Optional
}

// VariableType is the shape as the type expression of a variable.
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
	Name string
	Type *Type
}

// Field finds a field of a record.
func (s *Type) Field(name string) *Type {
	for _, f := range s.Fields {
		if f.Name == name {
			return f.Type
		}
	}
	return nil
}

// Text is the shape as a type expression.
func (s *Type) Text() string {
	t := s.BareText()
	if s.Optional {
		t += "?"
	}
	return t
}

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
	}
	return "text"
}

// declaration is a record's type in the document.
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

// Settle makes a text of what nothing is known of, gives records their names, and
// lists them: what holds others stands before them.
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

// sameFields tells whether two records, whose fields are settled, are one type.
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

// Inline takes the names of records away, so that the next look gives them anew.
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

// capital is a name as types are written.
func capital(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(Slug(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// singular names an element of a list: order for orders.
func singular(name string) string {
	if s, ok := strings.CutSuffix(name, "s"); ok && len(s) > 2 && !strings.HasSuffix(s, "s") {
		return s
	}
	return name + "Item"
}

// Join is the shape of a value that is of one shape here and of another there. It
// tells whether there is one.
func Join(a, b *Type) (*Type, bool) {
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

// joinRecords adds the fields of b: what only one of the two has may be missing.
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

// Noun names a sort for a user.
func (s Kind) Noun() string {
	names := [...]string{"something unknown", "a text", "a whole number", "a number", "a truth value", "a date", "a moment", "a list", "a record", "a message"}
	return names[s]
}

func (s *Type) FieldNames() []string {
	var all []string
	for _, f := range s.Fields {
		all = append(all, f.Name)
	}
	return all
}
