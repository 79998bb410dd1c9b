package convert

import (
	"fmt"
	"regexp/syntax"
	"strconv"

	"github.com/itchyny/gojq"
)

// position translates index: where a text or an element begins, null where it is
// not there.
func (t *jq) position(x *call) (*translatedExpr, error) {
	what, err := t.plainValue(x.Args[0], x.dot)
	switch {
	case err != nil:
		return nil, err
	case what.null || what.depth > 0 || what.of.sort != isText && what.of.sort != isInt && what.of.sort != isNumber:
		return nil, unsupportedJQ("index", "index looks for what is no text and no number for certain")
	}
	if x.in.of.sort == unknown {
		x.in.is(isList) // a list of tags, mostly; a text says so elsewhere
	}
	of := &inferredType{sort: isInt, declared: true, optional: true}
	if x.in.is(isText) && what.of.sort == isText {
		if word, constant := constantText(x.Args[0]); !constant || word == "" {
			return nil, unsupportedJQ("index", "index looks for a text that is worked out")
		}
		in := x.in.orBare(`""`)
		return &translatedExpr{text: fmt.Sprintf("(%s) contains %s ? len(split(%s, %s)[0]) : nil", in, what.text, in, what.text), prec: precIf, of: of, null: true}, nil
	}
	if !x.in.is(isList) {
		return nil, unsupportedJQ("index", "index looks into %s", x.in.of.sort.noun())
	}
	elem := &translatedExpr{text: "#", of: x.in.of.elem}
	commonType(elem, what)
	if !alike(elem, what) {
		return nil, unsupportedJQ("index", "index looks for %s among others", what.of.sort.noun())
	}
	return &translatedExpr{text: fmt.Sprintf("findIndex(%s, # == %s)", x.in.orBare("[]"), what.wrap(precAdd)), prec: precAtom, of: of, null: true}, nil
}

// has translates has for fields of which a schema says that they are there or are
// not; a variable does not tell what is missing from what is null.
func (t *jq) has(x *call) (*translatedExpr, error) {
	name, ok := constantText(x.Args[0])
	if !ok || x.in.null || x.in.of.sort != isRecord || !x.in.of.declared {
		return nil, unsupportedJQ("has", "has looks whether something is there, which cannot be told from null here; compare it with null")
	}
	of := x.in.of.field(name)
	if of != nil && of.optional {
		return nil, unsupportedJQ("has", "the field %q may be missing or null, which cannot be told apart here; compare it with null", name)
	}
	return constant(strconv.FormatBool(of != nil), isBool), nil
}

// inside translates a text that may be a part of another.
func (t *jq) inside(x *call) (*translatedExpr, error) {
	whole, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	return made(isBool, precCompare, "%s contains %s", whole.wrap(precAdd), x.in.nonNull()), nil
}

// among translates IN: whether a value is one of others, which are listed or the
// elements of a list.
func (t *jq) among(x *call) (*translatedExpr, error) {
	value, others := x.in, x.Args
	if len(x.Args) == 2 {
		v, err := t.plainValue(x.Args[0], x.dot)
		if err != nil {
			return nil, err
		}
		value, others = v, x.Args[1:]
	}
	if len(others) != 1 || value.stream {
		return nil, unsupportedJQ("IN", "IN works on one value")
	}
	var sum *translatedExpr
	for _, q := range listed(others[0]) {
		other, err := t.query(q, x.dot)
		if err != nil {
			return nil, err
		}
		var one *translatedExpr
		if other.stream {
			if value.depth > 0 {
				return nil, unsupportedJQ("IN", "IN looks through a list for each element of another")
			}
			elem := &translatedExpr{text: "#", prec: precAtom, of: other.of.elem, null: other.of.elem.optional}
			if one, err = t.equal(gojq.OpEq, elem, value); err == nil {
				one = made(isBool, precAtom, "any(%s, %s)", other.text, one.text)
			}
		} else {
			one, err = t.operator(gojq.OpEq, value, other)
		}
		if err != nil {
			return nil, err
		}
		if sum == nil {
			sum = one
			continue
		}
		sum = made(isBool, precOr, "%s or %s", sum.wrap(precOr), one.wrap(precOr))
	}
	return sum, nil
}

// isEmptyStream translates isempty: whether a stream has no values.
func (t *jq) isEmptyStream(x *call) (*translatedExpr, error) {
	if len(x.Args) != 1 {
		return nil, unsupportedJQ("isempty", "isempty takes one argument")
	}
	c, err := t.query(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, unsupportedJQ("isempty", "%s is one value", x.Args[0])
	}
	return made(isBool, precCompare, "len(%s) == 0", c.text), nil
}

// limit translates limit(n; …): the first values of a stream.
func (t *jq) limit(x *call) (*translatedExpr, error) {
	if len(x.Args) != 2 {
		return nil, unsupportedJQ("limit", "limit takes two arguments")
	}
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, unsupportedJQ("limit", "how many values there are must be written as a number")
	}
	c, err := t.query(x.Args[1], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, unsupportedJQ("limit", "%s is one value", x.Args[1])
	}
	return &translatedExpr{text: fmt.Sprintf("take(%s, %d)", c.text, n), prec: precAtom, of: c.of, stream: true}, nil
}

// nth translates nth(n): the element that is counted from 0.
func (t *jq) nth(x *call) (*translatedExpr, error) {
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, unsupportedJQ("nth", "which element it is must be written as a number")
	}
	return element(strconv.Itoa(n))(t, x)
}

// sortedBy translates sort_by and its like, for keys that are numbers or texts.
func sortedBy(format string) func(*jq, *call) (*translatedExpr, error) {
	return func(t *jq, x *call) (*translatedExpr, error) {
		key, err := t.each(x.Args[0], x.in)
		if err != nil {
			return nil, err
		}
		t.assumeType(key, isNumber)
		plain := *key.of
		plain.optional = false
		if key.stream || key.member != nil || plain.sort != unknown && !ordered(&plain) {
			return nil, unsupportedJQ(x.Name, "%s puts values in order that are not all numbers or all texts", x.Name)
		}
		c := x.list("sortBy(%s, " + escaped(key.text) + ")")
		if key.null { // null comes before everything else
			list, k := x.list("%s").text, key.wrap(precAdd)
			c.text = fmt.Sprintf("concat(filter(%s, %s == nil), sortBy(filter(%s, %s != nil), %s))", list, k, list, k, key.text)
		}
		if format == "%s" {
			return c, nil
		}
		return &translatedExpr{text: fmt.Sprintf(format, c.text), prec: precAtom, of: x.in.of.elem, null: true}, nil
	}
}

// escaped is a text within a format.
func escaped(s string) string {
	made := ""
	for _, r := range s {
		if r == '%' {
			made += "%"
		}
		made += string(r)
	}
	return made
}

// replaced translates sub and gsub of a constant text by another.
func replaced(count string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		pattern, ok := constantText(x.Args[0])
		with, ok2 := constantText(x.Args[1])
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if !ok || !ok2 || err != nil || tree.Op != syntax.OpLiteral || tree.Flags&syntax.FoldCase != 0 {
			return nil, unsupportedJQ(x.Name, "%s replaces a pattern; only a constant text by another can be translated", x.Name)
		}
		return made(isText, precAtom, "replace(%s, %s, %s%s)", x.in.nonNull(), quoted(string(tree.Rune)), quoted(with), count), nil
	}
}

// present are the values of a stream that are not null.
func present(stream *translatedExpr) *translatedExpr {
	of := *stream.of
	elem := *of.elem
	elem.optional = false
	of.elem = &elem
	if stream.of.elem.sort == unknown { // what is found out of the values is so of the list's
		of.elem = stream.of.elem
	}
	return &translatedExpr{text: "filter(" + stream.text + ", # != nil)", prec: precAtom, of: &of, stream: true}
}

// listedTruths are the parts of [a, b] | all, and the function's name; nil for
// other queries.
func listedTruths(q *gojq.Query) (all []*gojq.Query, name string) {
	f := called(q.Right)
	if f == nil || f.Name != "all" && f.Name != "any" || len(f.Args) > 0 {
		return nil, ""
	}
	return listedArray(q.Left), f.Name
}

// truths translates [a, b] | all.
func (t *jq) truths(all []*gojq.Query, name string, dot *translatedExpr) (*translatedExpr, error) {
	word, prec := "and", precAnd
	if name == "any" {
		word, prec = "or", precOr
	}
	var sum *translatedExpr
	for _, q := range all {
		one, err := t.query(q, dot)
		switch {
		case err != nil:
			return nil, err
		case one.stream && len(all) == 1:
			list := &translatedExpr{text: one.text, prec: one.prec, of: one.of}
			return quantifier(name)(t, &call{Func: &gojq.Func{Name: name}, in: list, dot: list})
		case one.stream || one.member != nil:
			return nil, unsupportedJQ(q, "%s gives any number of values beside others", q)
		}
		one = t.truth(one)
		if sum == nil {
			sum = one
			continue
		}
		sum = made(isBool, prec, "%s %s %s", sum.wrap(prec), word, one.wrap(prec))
	}
	return sum, nil
}
