package convert

import "strings"

// typeKind is what a value of a shape is.
type typeKind uint8

const (
	unknown typeKind = iota // nothing is known; it becomes a text
	isText
	isInt
	isNumber
	isBool
	isDate     // a date, for tools
	isDateTime // a moment, for tools
	isList
	isRecord
	isMessage // a ChatMessage
)

// inferredType is what is known of a value: from a schema, from a constant, or from how
// expressions use it. It becomes a type of the document.
type inferredType struct {
	sort     typeKind
	optional bool          // it may be null
	declared bool          // the file says it: how it is used changes nothing
	top      bool          // it is of a variable, whose lists hold no lists
	inner    bool          // it is of an element of such a list
	elem     *inferredType // of a list
	fields   []*field      // of a record
	name     string        // of a record: its type's id
	about    string        // of a record: its type's description
}

// flat tells whether a variable can be of the shape: its lists hold no lists, as
// those inside of records may.
func (s *inferredType) flat() bool {
	return s.sort != isList || s.elem == nil || s.elem.sort != isList
}

// hasNullableElements tells whether it is a list some of whose elements may be null, which a
// variable's cannot.
func (s *inferredType) hasNullableElements() bool {
	return s.sort == isList && s.elem != nil && s.elem.optional
}

// variableType is the shape as the type expression of a variable.
func (s *inferredType) variableType() string {
	if !s.hasNullableElements() {
		return s.typeText()
	}
	full := *s.elem
	full.optional = false
	whole := *s
	whole.elem = &full
	return whole.typeText()
}

// field is a field of a record.
type field struct {
	name string
	of   *inferredType
}

// field finds a field of a record.
func (s *inferredType) field(name string) *inferredType {
	for _, f := range s.fields {
		if f.name == name {
			return f.of
		}
	}
	return nil
}

// typeText is the shape as a type expression.
func (s *inferredType) typeText() string {
	t := s.bareType()
	if s.optional {
		t += "?"
	}
	return t
}

func (s *inferredType) bareType() string {
	switch s.sort {
	case isInt:
		return "int"
	case isNumber:
		return "float"
	case isBool:
		return "boolean"
	case isDate:
		return "date"
	case isDateTime:
		return "datetime"
	case isList:
		return "list[" + s.elem.typeText() + "]"
	case isRecord:
		return s.name
	case isMessage:
		return "ChatMessage"
	}
	return "text"
}

// declaration is a record's type in the document.
func (s *inferredType) declaration() *block {
	b := new(block).set("id", s.name)
	if s.about != "" {
		b.set("description", s.about)
	}
	properties := new(block)
	for _, f := range s.fields {
		properties.set(f.name, f.of.typeText())
	}
	return b.set("properties", properties)
}

// settle makes a text of what nothing is known of, gives records their names, and
// lists them: what holds others stands before them.
func (s *inferredType) settle(ids *names, name string, all *[]*inferredType) {
	switch s.sort {
	case unknown:
		s.sort = isText
	case isList:
		if s.elem == nil {
			s.elem = &inferredType{sort: isText}
		}
		s.elem.settle(ids, singular(name), all)
	case isRecord:
		if s.name != "" {
			return
		}
		made := either(capital(name), "Record")
		for _, f := range s.fields {
			f.of.settle(ids, made+capital(f.name), all)
		}
		for _, other := range *all {
			if s.about == other.about && s.sameFields(other) {
				s.name = other.name
				return
			}
		}
		s.name = ids.id(made, "Record")
		*all = append(*all, s)
	}
}

// sameFields tells whether two records, whose fields are settled, are one type.
func (s *inferredType) sameFields(t *inferredType) bool {
	if len(s.fields) != len(t.fields) {
		return false
	}
	for i, f := range s.fields {
		if f.name != t.fields[i].name || f.of.typeText() != t.fields[i].of.typeText() {
			return false
		}
	}
	return true
}

// inline takes the names of records away, so that the next look gives them anew.
func (s *inferredType) inline() {
	if s == nil {
		return
	}
	s.name = ""
	s.elem.inline()
	for _, f := range s.fields {
		f.of.inline()
	}
}

// capital is a name as types are written.
func capital(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(slug(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
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

// join is the shape of a value that is of one shape here and of another there. It
// tells whether there is one.
func join(a, b *inferredType) (*inferredType, bool) {
	switch {
	case a == nil || a.sort == unknown:
		if a != nil && a.optional && !b.optional {
			c := *b
			c.optional = true
			return &c, true
		}
		return b, true
	case b == nil || b.sort == unknown:
		c := *a
		c.optional = a.optional || b != nil && b.optional
		return &c, true
	}
	c := *a
	c.optional = a.optional || b.optional
	switch {
	case a.sort == isInt && b.sort == isNumber:
		c.sort = isNumber
		return &c, true
	case a.sort == isNumber && b.sort == isInt:
		return &c, true
	case a.sort != b.sort:
		return a, false
	case a.sort == isList:
		elem, ok := join(a.elem, b.elem)
		c.elem = elem
		return &c, ok
	case a.sort == isRecord:
		return joinRecords(&c, b)
	}
	return &c, true
}

// joinRecords adds the fields of b: what only one of the two has may be missing.
func joinRecords(a, b *inferredType) (*inferredType, bool) {
	all := true
	var fields []*field
	for _, f := range a.fields {
		of := f.of
		if theirs := b.field(f.name); theirs != nil {
			made, ok := join(of, theirs)
			of, all = made, all && ok
		} else {
			made := *of
			made.optional = true
			of = &made
		}
		fields = append(fields, &field{f.name, of})
	}
	for _, f := range b.fields {
		if a.field(f.name) == nil {
			made := *f.of
			made.optional = true
			fields = append(fields, &field{f.name, &made})
		}
	}
	a.fields = fields
	return a, all
}

// noun names a sort for a user.
func (s typeKind) noun() string {
	names := [...]string{"something unknown", "a text", "a whole number", "a number", "a truth value", "a date", "a moment", "a list", "a record", "a message"}
	return names[s]
}
