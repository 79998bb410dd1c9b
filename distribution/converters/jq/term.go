package jq

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// term translates a term and its suffixes: .a.b[0], "text", if … end.
func (t *Translator) term(x *gojq.Term, dot *Expr) (*Expr, error) {
	c, err := t.head(x, dot)
	for i := 0; i < len(x.SuffixList) && err == nil; i++ {
		suffix := x.SuffixList[i]
		optional := i+1 < len(x.SuffixList) && x.SuffixList[i+1].Optional
		switch {
		case suffix.Optional && i == 0 && x.Type != gojq.TermTypeIndex:
			err = Unsupported("?", "? after more than a path has no counterpart")
		case suffix.Optional:
		case suffix.Iter:
			c, err = t.iterate(c, optional)
		case c.stream:
			c, err = t.forEach(c, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: suffix.Index}})
		default:
			c, err = t.index(c, suffix.Index, dot)
		}
	}
	return c, err
}

func (t *Translator) head(x *gojq.Term, dot *Expr) (*Expr, error) {
	switch x.Type {
	case gojq.TermTypeIdentity:
		return dot, nil
	case gojq.TermTypeNull:
		return &Expr{Source: "nil", Prec: PrecAtom, Type: &document.Type{Declared: true, Optional: true}, Nullable: true}, nil
	case gojq.TermTypeTrue:
		return Constant("true", document.Bool), nil
	case gojq.TermTypeFalse:
		return Constant("false", document.Bool), nil
	case gojq.TermTypeNumber:
		return t.Number(x.Number)
	case gojq.TermTypeString:
		return t.str(x.Str, dot)
	case gojq.TermTypeFormat:
		return t.format(x, dot)
	case gojq.TermTypeIndex:
		return t.index(dot, x.Index, dot)
	case gojq.TermTypeQuery:
		return t.query(x.Query, dot)
	case gojq.TermTypeUnary:
		return t.unary(x.Unary, dot)
	case gojq.TermTypeIf:
		return t.decide(x.If, dot)
	case gojq.TermTypeArray:
		return t.array(x.Array, dot)
	case gojq.TermTypeObject:
		return t.object(x.Object, dot)
	case gojq.TermTypeFunc:
		if strings.HasPrefix(x.Func.Name, "$") {
			return t.variable(x.Func.Name)
		}
		return t.call(x.Func, dot)
	}
	word := strings.Fields(x.String() + " ")
	return nil, Unsupported(append(word, "")[0], "%s has no counterpart", first(x.String()))
}

// format translates @text and @json.
func (t *Translator) format(x *gojq.Term, dot *Expr) (*Expr, error) {
	name := map[string]string{"@text": "tostring", "@json": "tojson"}[x.Format]
	switch {
	case x.Format == "@text" && x.Str != nil:
		return t.str(x.Str, dot)
	case name != "" && x.Str == nil:
		return t.call(&gojq.Func{Name: name}, dot)
	}
	return nil, Unsupported(x.Format, "format %s has no counterpart", x.Format)
}

func first(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

func (t *Translator) variable(name string) (*Expr, error) {
	c := t.Vars[strings.TrimPrefix(name, "$")]
	switch {
	case c == nil:
		return nil, Unsupported(name, "%s exists only in the engine", name)
	case c.depth > 0 && c.depth != t.depth:
		return nil, Unsupported(name, "%s is used inside another list", name)
	}
	return c, nil
}

// Number translates a number literal.
func (t *Translator) Number(text string) (*Expr, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Constant(strconv.FormatInt(n, 10), document.Int), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, Unsupported(text, "number %s is too large", text)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return Constant(s, document.Float), nil
}

func (t *Translator) unary(x *gojq.Unary, dot *Expr) (*Expr, error) {
	c, err := t.term(x.Term, dot)
	switch {
	case err != nil:
		return nil, err
	case c.stream || !c.number():
		return nil, Unsupported(x.Term, "%s is not a number", x.Term)
	case x.Op == gojq.OpAdd:
		return c, nil
	}
	return newExpr(c.Type.Kind, PrecUnary, "-%s", c.Wrap(PrecAtom)), nil
}

// str translates a string with interpolations.
func (t *Translator) str(s *gojq.String, dot *Expr) (*Expr, error) {
	if len(s.Queries) == 0 {
		return QuoteExpr(s.Str), nil
	}
	var sum *Expr
	for _, q := range s.Queries {
		next, err := t.plainValue(q, dot)
		if err != nil {
			return nil, err
		}
		t.AssumeType(next, document.Text)
		if next, err = t.AsText(next); err != nil {
			return nil, err
		}
		if sum == nil {
			sum = next
			continue
		}
		sum = newExpr(document.Text, PrecAdd, "%s + %s", sum.Wrap(PrecAdd), next.Wrap(PrecMultiply))
	}
	return sum, nil
}

// AsText returns a value as jq interpolates it into a string.
func (t *Translator) AsText(c *Expr) (*Expr, error) {
	switch {
	case c.Type.Kind == document.Text && !c.Nullable:
		return c, nil
	case c.Type.Kind == document.Text:
		return newExpr(document.Text, PrecAtom, `(%s ?? "null")`, c.Wrap(PrecAtom)), nil
	case c.Type.Kind == document.Int && !c.Nullable:
		return newExpr(document.Text, PrecAtom, "string(%s)", c.Source), nil
	}
	return t.asJSON(c)
}

// asJSON returns a value as JSON.
func (t *Translator) asJSON(c *Expr) (*Expr, error) {
	if hasOptionalFields(c.Type) {
		return nil, Unsupported("", "the text of a record would contain null for missing fields")
	}
	return newExpr(document.Text, PrecAtom, "toJSON(%s)", c.Source), nil
}

// hasOptionalFields reports whether a type contains a record with optional fields.
func hasOptionalFields(s *document.Type) bool {
	switch {
	case s == nil:
		return false
	case s.Kind == document.List:
		return hasOptionalFields(s.Elem)
	case s.Kind != document.Record:
		return false
	}
	for _, f := range s.Fields {
		if f.Type.Optional || hasOptionalFields(f.Type) {
			return true
		}
	}
	return !s.Declared
}

// iterate translates .[].
func (t *Translator) iterate(c *Expr, optional bool) (*Expr, error) {
	if c.stream || c.Member != nil || !c.is(document.List) {
		return nil, Unsupported("[]", "[] iterates over %s, not a list", c.Type.Kind.Noun())
	}
	text := c.Source
	if optional {
		text = c.or("[]")
	}
	return &Expr{Source: text, Prec: PrecAtom, Type: c.Type, stream: true, depth: c.depth}, nil
}

// index translates .name, ["name"], [0] and [1:3].
func (t *Translator) index(c *Expr, x *gojq.Index, dot *Expr) (*Expr, error) {
	switch {
	case x.Name != "":
		return t.Field(c, x.Name)
	case x.Str != nil && len(x.Str.Queries) == 0:
		return t.Field(c, x.Str.Str)
	case x.IsSlice:
		return t.slice(c, x, dot)
	case x.Start == nil:
		return nil, Unsupported(x, "%s has no counterpart", x)
	}
	if name, ok := constantText(x.Start); ok {
		return t.Field(c, name)
	}
	at, err := t.plainValue(x.Start, dot)
	switch {
	case err != nil:
		return nil, err
	case at.Type.Kind == document.Text:
		return nil, Unsupported(x, "the field of %s is not constant", x)
	case at.Type.Kind != document.Int || at.Nullable || c.Member != nil || !c.is(document.List):
		return nil, Unsupported(x, "an index needs a list and an integer")
	}
	return &Expr{Source: c.getAt(at.Source), Prec: PrecAtom, Type: c.Type.Elem, Nullable: true}, nil
}

// getAt returns an element of a list, null if there is none.
func (c *Expr) getAt(n string) string { return fmt.Sprintf("get(%s, %s)", c.Source, n) }

// Field translates .name.
func (t *Translator) Field(c *Expr, name string) (*Expr, error) {
	if c.Member != nil {
		return c.Member(name)
	}
	if !c.is(document.Record) {
		return nil, Unsupported("."+name, "%s has no field %q", c.Type.Kind.Noun(), name)
	}
	of := c.Type.Field(name)
	switch {
	case of == nil && c.Type.Declared:
		return nil, Unsupported("."+name, "unknown field %q; it has %s", name, strings.Join(c.Type.FieldNames(), ", "))
	case of == nil:
		of = &document.Type{Optional: true}
		c.Type.Fields = append(c.Type.Fields, &document.Field{Name: name, Type: of})
	}
	link := "."
	if c.Nullable {
		link = "?."
	}
	if document.IsIdentifier(name) {
		return &Expr{Source: c.Wrap(PrecAtom) + link + name, Prec: PrecAtom, Type: of, Nullable: c.Nullable || of.Optional, depth: c.depth, Unverified: c.Unverified, Root: c.Root}, nil
	}
	if link == "." {
		link = ""
	}
	return &Expr{Source: c.Wrap(PrecAtom) + link + "[" + strconv.Quote(name) + "]", Prec: PrecAtom, Type: of, Nullable: c.Nullable || of.Optional, depth: c.depth, Unverified: c.Unverified, Root: c.Root}, nil
}

// slice translates [1:3] of a list or a string. jq slices strings by characters,
// the language by bytes.
func (t *Translator) slice(c *Expr, x *gojq.Index, dot *Expr) (*Expr, error) {
	if c.Member == nil && !t.AssumeType(c, document.List) && !c.Type.Declared {
		return &Expr{Source: c.Source, Prec: PrecAtom, Type: c.Type}, nil // a string or a list, determined in another pass
	}
	text := c.Member == nil && c.Type.Kind == document.Text
	if !text && (c.Member != nil || !c.is(document.List)) {
		return nil, Unsupported(x, "%s: only lists and strings can be sliced", x)
	}
	ends := [2]string{}
	for i, q := range []*gojq.Query{x.Start, x.End} {
		if q == nil {
			continue
		}
		n, err := t.plainValue(q, dot)
		if err != nil {
			return nil, err
		}
		if _, bad := strconv.Atoi(strings.Trim(n.Source, "()")); bad != nil {
			return nil, Unsupported(x, "%s: the bounds of a slice must be constant", x)
		}
		ends[i] = n.Source
	}
	part := &Expr{Source: fmt.Sprintf("%s[%s:%s]", c.Wrap(PrecAtom), ends[0], ends[1]), Prec: PrecAtom, Type: c.Type, Nullable: c.Nullable}
	if text { // by characters, as in jq
		part.Source = fmt.Sprintf(`join(split(%s, "")[%s:%s], "")`, c.Source, ends[0], ends[1])
	}
	if c.Nullable {
		part.Source, part.Prec = fmt.Sprintf("%s == nil ? nil : %s", c.Wrap(PrecAdd), part.Source), precIf
	}
	return part, nil
}
