package convert

import (
	"fmt"
	"regexp/syntax"
	"strconv"

	"github.com/itchyny/gojq"
)

// position translates index: where a text or an element begins, null where it is
// not there.
func (t *jq) position(x *call) (*code, error) {
	what, err := t.plainValue(x.Args[0], x.dot)
	switch {
	case err != nil:
		return nil, err
	case what.null || what.depth > 0 || what.of.sort != isText && what.of.sort != isInt && what.of.sort != isNumber:
		return nil, untranslatable("index", "index looks for what is no text and no number for certain")
	}
	if x.in.of.sort == unknown {
		x.in.is(isList) // a list of tags, mostly; a text says so elsewhere
	}
	of := &shape{sort: isInt, declared: true, optional: true}
	if x.in.is(isText) && what.of.sort == isText {
		if word, constant := constantText(x.Args[0]); !constant || word == "" {
			return nil, untranslatable("index", "index looks for a text that is worked out")
		}
		in := x.in.orBare(`""`)
		return &code{text: fmt.Sprintf("(%s) contains %s ? len(split(%s, %s)[0]) : nil", in, what.text, in, what.text), prec: precIf, of: of, null: true}, nil
	}
	if !x.in.is(isList) {
		return nil, untranslatable("index", "index looks into %s", x.in.of.sort.noun())
	}
	elem := &code{text: "#", of: x.in.of.elem}
	meet(elem, what)
	if !alike(elem, what) {
		return nil, untranslatable("index", "index looks for %s among others", what.of.sort.noun())
	}
	return &code{text: fmt.Sprintf("findIndex(%s, # == %s)", x.in.orBare("[]"), what.wrap(precAdd)), prec: precAtom, of: of, null: true}, nil
}

// has translates has for fields of which a schema says that they are there or are
// not; a variable does not tell what is missing from what is null.
func (t *jq) has(x *call) (*code, error) {
	name, ok := constantText(x.Args[0])
	if !ok || x.in.null || x.in.of.sort != isRecord || !x.in.of.declared {
		return nil, untranslatable("has", "has looks whether something is there, which cannot be told from null here; compare it with null")
	}
	of := x.in.of.field(name)
	if of != nil && of.optional {
		return nil, untranslatable("has", "the field %q may be missing or null, which cannot be told apart here; compare it with null", name)
	}
	return constant(strconv.FormatBool(of != nil), isBool), nil
}

// inside translates a text that may be a part of another.
func (t *jq) inside(x *call) (*code, error) {
	whole, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	return made(isBool, precCompare, "%s contains %s", whole.wrap(precAdd), x.in.sure()), nil
}

// among translates IN: whether a value is one of others, which are listed or the
// elements of a list.
func (t *jq) among(x *call) (*code, error) {
	value, others := x.in, x.Args
	if len(x.Args) == 2 {
		v, err := t.plainValue(x.Args[0], x.dot)
		if err != nil {
			return nil, err
		}
		value, others = v, x.Args[1:]
	}
	if len(others) != 1 || value.stream {
		return nil, untranslatable("IN", "IN works on one value")
	}
	var sum *code
	for _, q := range listed(others[0]) {
		other, err := t.query(q, x.dot)
		if err != nil {
			return nil, err
		}
		var one *code
		if other.stream {
			if value.depth > 0 {
				return nil, untranslatable("IN", "IN looks through a list for each element of another")
			}
			elem := &code{text: "#", prec: precAtom, of: other.of.elem, null: other.of.elem.optional}
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
func (t *jq) isEmptyStream(x *call) (*code, error) {
	if len(x.Args) != 1 {
		return nil, untranslatable("isempty", "isempty takes one argument")
	}
	c, err := t.query(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, untranslatable("isempty", "%s is one value", x.Args[0])
	}
	return made(isBool, precCompare, "len(%s) == 0", c.text), nil
}

// limit translates limit(n; …): the first values of a stream.
func (t *jq) limit(x *call) (*code, error) {
	if len(x.Args) != 2 {
		return nil, untranslatable("limit", "limit takes two arguments")
	}
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, untranslatable("limit", "how many values there are must be written as a number")
	}
	c, err := t.query(x.Args[1], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, untranslatable("limit", "%s is one value", x.Args[1])
	}
	return &code{text: fmt.Sprintf("take(%s, %d)", c.text, n), prec: precAtom, of: c.of, stream: true}, nil
}

// nth translates nth(n): the element that is counted from 0.
func (t *jq) nth(x *call) (*code, error) {
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, untranslatable("nth", "which element it is must be written as a number")
	}
	return element(strconv.Itoa(n))(t, x)
}

// sortedBy translates sort_by and its like, for keys that are numbers or texts.
func sortedBy(format string) func(*jq, *call) (*code, error) {
	return func(t *jq, x *call) (*code, error) {
		key, err := t.each(x.Args[0], x.in)
		if err != nil {
			return nil, err
		}
		t.mostly(key, isNumber)
		plain := *key.of
		plain.optional = false
		if key.stream || key.member != nil || plain.sort != unknown && !ordered(&plain) {
			return nil, untranslatable(x.Name, "%s puts values in order that are not all numbers or all texts", x.Name)
		}
		c := x.list("sortBy(%s, " + escaped(key.text) + ")")
		if key.null { // null comes before everything else
			list, k := x.list("%s").text, key.wrap(precAdd)
			c.text = fmt.Sprintf("concat(filter(%s, %s == nil), sortBy(filter(%s, %s != nil), %s))", list, k, list, k, key.text)
		}
		if format == "%s" {
			return c, nil
		}
		return &code{text: fmt.Sprintf(format, c.text), prec: precAtom, of: x.in.of.elem, null: true}, nil
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
func replaced(count string) func(*jq, *call) (*code, error) {
	return func(_ *jq, x *call) (*code, error) {
		pattern, ok := constantText(x.Args[0])
		with, ok2 := constantText(x.Args[1])
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if !ok || !ok2 || err != nil || tree.Op != syntax.OpLiteral || tree.Flags&syntax.FoldCase != 0 {
			return nil, untranslatable(x.Name, "%s replaces a pattern; only a constant text by another can be translated", x.Name)
		}
		return made(isText, precAtom, "replace(%s, %s, %s%s)", x.in.sure(), quoted(string(tree.Rune)), quoted(with), count), nil
	}
}

// present are the values of a stream that are not null.
func present(stream *code) *code {
	of := *stream.of
	elem := *of.elem
	elem.optional = false
	of.elem = &elem
	if stream.of.elem.sort == unknown { // what is found out of the values is so of the list's
		of.elem = stream.of.elem
	}
	return &code{text: "filter(" + stream.text + ", # != nil)", prec: precAtom, of: &of, stream: true}
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
func (t *jq) truths(all []*gojq.Query, name string, dot *code) (*code, error) {
	word, prec := "and", precAnd
	if name == "any" {
		word, prec = "or", precOr
	}
	var sum *code
	for _, q := range all {
		one, err := t.query(q, dot)
		switch {
		case err != nil:
			return nil, err
		case one.stream && len(all) == 1:
			list := &code{text: one.text, prec: one.prec, of: one.of}
			return quantifier(name)(t, &call{Func: &gojq.Func{Name: name}, in: list, dot: list})
		case one.stream || one.member != nil:
			return nil, untranslatable(q, "%s gives any number of values beside others", q)
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
