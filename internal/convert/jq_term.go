package convert

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// term translates a term with what follows it: .a.b[0], "text", if … end.
func (t *jq) term(x *gojq.Term, dot *translatedExpr) (*translatedExpr, error) {
	c, err := t.head(x, dot)
	for i := 0; i < len(x.SuffixList) && err == nil; i++ {
		suffix := x.SuffixList[i]
		optional := i+1 < len(x.SuffixList) && x.SuffixList[i+1].Optional
		switch {
		case suffix.Optional && i == 0 && x.Type != gojq.TermTypeIndex:
			err = unsupportedJQ("?", "? hides errors of more than a path, which has no counterpart")
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

func (t *jq) head(x *gojq.Term, dot *translatedExpr) (*translatedExpr, error) {
	switch x.Type {
	case gojq.TermTypeIdentity:
		return dot, nil
	case gojq.TermTypeNull:
		return &translatedExpr{text: "nil", prec: precAtom, of: &inferredType{declared: true, optional: true}, null: true}, nil
	case gojq.TermTypeTrue:
		return constant("true", isBool), nil
	case gojq.TermTypeFalse:
		return constant("false", isBool), nil
	case gojq.TermTypeNumber:
		return t.literal(x.Number)
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
	return nil, unsupportedJQ(append(word, "")[0], "%s has no counterpart", first(x.String()))
}

// format translates @text and @json.
func (t *jq) format(x *gojq.Term, dot *translatedExpr) (*translatedExpr, error) {
	name := map[string]string{"@text": "tostring", "@json": "tojson"}[x.Format]
	switch {
	case x.Format == "@text" && x.Str != nil:
		return t.str(x.Str, dot)
	case name != "" && x.Str == nil:
		return t.call(&gojq.Func{Name: name}, dot)
	}
	return nil, unsupportedJQ(x.Format, "the format %s has no counterpart", x.Format)
}

// first is the first word of a text.
func first(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

func (t *jq) variable(name string) (*translatedExpr, error) {
	c := t.vars[strings.TrimPrefix(name, "$")]
	switch {
	case c == nil:
		return nil, unsupportedJQ(name, "%s is not known outside of the engine", name)
	case c.depth > 0 && c.depth != t.depth:
		return nil, unsupportedJQ(name, "%s is used inside of another list", name)
	}
	return c, nil
}

func (t *jq) literal(text string) (*translatedExpr, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return constant(strconv.FormatInt(n, 10), isInt), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, unsupportedJQ(text, "the number %s is too large", text)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return constant(s, isNumber), nil
}

func (t *jq) unary(x *gojq.Unary, dot *translatedExpr) (*translatedExpr, error) {
	c, err := t.term(x.Term, dot)
	switch {
	case err != nil:
		return nil, err
	case c.stream || !c.number():
		return nil, unsupportedJQ(x.Term, "%s is no number", x.Term)
	case x.Op == gojq.OpAdd:
		return c, nil
	}
	return made(c.of.sort, precUnary, "-%s", c.wrap(precAtom)), nil
}

// str translates a text with what is set into it.
func (t *jq) str(s *gojq.String, dot *translatedExpr) (*translatedExpr, error) {
	if len(s.Queries) == 0 {
		return quotedCode(s.Str), nil
	}
	var sum *translatedExpr
	for _, q := range s.Queries {
		next, err := t.plainValue(q, dot)
		if err != nil {
			return nil, err
		}
		t.assumeType(next, isText)
		if next, err = t.asText(next); err != nil {
			return nil, err
		}
		if sum == nil {
			sum = next
			continue
		}
		sum = made(isText, precAdd, "%s + %s", sum.wrap(precAdd), next.wrap(precMultiply))
	}
	return sum, nil
}

// asText is a value as jq sets it into a text.
func (t *jq) asText(c *translatedExpr) (*translatedExpr, error) {
	switch {
	case c.of.sort == isText && !c.null:
		return c, nil
	case c.of.sort == isText:
		return made(isText, precAtom, `(%s ?? "null")`, c.wrap(precAtom)), nil
	case c.of.sort == isInt && !c.null:
		return made(isText, precAtom, "string(%s)", c.text), nil
	}
	return t.asJSON(c)
}

// asJSON is a value written as JSON.
func (t *jq) asJSON(c *translatedExpr) (*translatedExpr, error) {
	if hasOptionalFields(c.of) {
		return nil, unsupportedJQ("", "a record is written out here, and what is missing in one could not be told from what is null")
	}
	return made(isText, precAtom, "toJSON(%s)", c.text), nil
}

// hasOptionalFields tells whether a value holds a record some of whose fields may be missing.
func hasOptionalFields(s *inferredType) bool {
	switch {
	case s == nil:
		return false
	case s.sort == isList:
		return hasOptionalFields(s.elem)
	case s.sort != isRecord:
		return false
	}
	for _, f := range s.fields {
		if f.of.optional || hasOptionalFields(f.of) {
			return true
		}
	}
	return !s.declared
}

// iterate translates .[]: the elements one after the other.
func (t *jq) iterate(c *translatedExpr, optional bool) (*translatedExpr, error) {
	if c.stream || c.member != nil || !c.is(isList) {
		return nil, unsupportedJQ("[]", "[] goes through %s; only lists can be gone through", c.of.sort.noun())
	}
	text := c.text
	if optional {
		text = c.or("[]")
	}
	return &translatedExpr{text: text, prec: precAtom, of: c.of, stream: true, depth: c.depth}, nil
}

// index translates .name, ["name"], [0] and [1:3].
func (t *jq) index(c *translatedExpr, x *gojq.Index, dot *translatedExpr) (*translatedExpr, error) {
	switch {
	case x.Name != "":
		return t.field(c, x.Name)
	case x.Str != nil && len(x.Str.Queries) == 0:
		return t.field(c, x.Str.Str)
	case x.IsSlice:
		return t.slice(c, x, dot)
	case x.Start == nil:
		return nil, unsupportedJQ(x, "%s has no counterpart", x)
	}
	if name, ok := constantText(x.Start); ok {
		return t.field(c, name)
	}
	at, err := t.plainValue(x.Start, dot)
	switch {
	case err != nil:
		return nil, err
	case at.of.sort == isText:
		return nil, unsupportedJQ(x, "the field of %s is worked out", x)
	case at.of.sort != isInt || at.null || c.member != nil || !c.is(isList):
		return nil, unsupportedJQ(x, "only lists have elements with numbers, and the number must be a whole one")
	}
	return &translatedExpr{text: c.getAt(at.text), prec: precAtom, of: c.of.elem, null: true}, nil
}

// getAt is an element of a list, null where there is none.
func (c *translatedExpr) getAt(n string) string { return fmt.Sprintf("get(%s, %s)", c.text, n) }

// field translates .name.
func (t *jq) field(c *translatedExpr, name string) (*translatedExpr, error) {
	if c.member != nil {
		return c.member(name)
	}
	if !c.is(isRecord) {
		return nil, unsupportedJQ("."+name, "%s has no field %q", c.of.sort.noun(), name)
	}
	of := c.of.field(name)
	switch {
	case of == nil && c.of.declared:
		return nil, unsupportedJQ("."+name, "there is no field %q; it has %s", name, strings.Join(c.of.fieldNames(), ", "))
	case of == nil:
		of = &inferredType{optional: true}
		c.of.fields = append(c.of.fields, &field{name, of})
	}
	link := "."
	if c.null {
		link = "?."
	}
	if isName(name) {
		return &translatedExpr{text: c.wrap(precAtom) + link + name, prec: precAtom, of: of, null: c.null || of.optional, depth: c.depth, loose: c.loose, root: c.root}, nil
	}
	if link == "." {
		link = ""
	}
	return &translatedExpr{text: c.wrap(precAtom) + link + "[" + strconv.Quote(name) + "]", prec: precAtom, of: of, null: c.null || of.optional, depth: c.depth, loose: c.loose, root: c.root}, nil
}

func (s *inferredType) fieldNames() []string {
	var all []string
	for _, f := range s.fields {
		all = append(all, f.name)
	}
	return all
}

// isName tells whether a word can be written as a name in an expression.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	switch s {
	case "", "in", "not", "and", "or", "let", "if", "else", "nil", "true", "false", "matches", "contains", "startsWith", "endsWith":
		return false
	}
	return true
}

// slice translates [1:3] of a list or a text; jq cuts texts by characters, expressions by bytes.
func (t *jq) slice(c *translatedExpr, x *gojq.Index, dot *translatedExpr) (*translatedExpr, error) {
	if c.member == nil && !t.assumeType(c, isList) && !c.of.declared {
		return &translatedExpr{text: c.text, prec: precAtom, of: c.of}, nil // a text or a list; another look tells
	}
	text := c.member == nil && c.of.sort == isText
	if !text && (c.member != nil || !c.is(isList)) {
		return nil, unsupportedJQ(x, "%s: only lists and texts can be cut", x)
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
		if _, bad := strconv.Atoi(strings.Trim(n.text, "()")); bad != nil {
			return nil, unsupportedJQ(x, "%s: where a list is cut must be written as numbers", x)
		}
		ends[i] = n.text
	}
	part := &translatedExpr{text: fmt.Sprintf("%s[%s:%s]", c.wrap(precAtom), ends[0], ends[1]), prec: precAtom, of: c.of, null: c.null}
	if text { // by characters, as jq does
		part.text = fmt.Sprintf(`join(split(%s, "")[%s:%s], "")`, c.text, ends[0], ends[1])
	}
	if c.null {
		part.text, part.prec = fmt.Sprintf("%s == nil ? nil : %s", c.wrap(precAdd), part.text), precIf
	}
	return part, nil
}
