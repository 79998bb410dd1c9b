package jq

import (
	"fmt"
	"regexp/syntax"
	"strconv"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// position translates index: the position of a substring or element, null if there
// is none.
func (t *Translator) position(x *call) (*Expr, error) {
	what, err := t.plainValue(x.Args[0], x.dot)
	switch {
	case err != nil:
		return nil, err
	case what.Nullable || what.depth > 0 || what.Type.Kind != document.Text && what.Type.Kind != document.Int && what.Type.Kind != document.Float:
		return nil, Unsupported("index", "index searches for a value that may be neither string nor number")
	}
	if x.in.Type.Kind == document.Unknown {
		x.in.is(document.List) // usually a list of tags; other uses reveal strings
	}
	of := &document.Type{Kind: document.Int, Declared: true, Optional: true}
	if x.in.is(document.Text) && what.Type.Kind == document.Text {
		if word, constant := constantText(x.Args[0]); !constant || word == "" {
			return nil, Unsupported("index", "index searches for a string that is not constant")
		}
		in := x.in.orBare(`""`)
		return &Expr{Source: fmt.Sprintf("(%s) contains %s ? len(split(%s, %s)[0]) : nil", in, what.Source, in, what.Source), Prec: precIf, Type: of, Nullable: true}, nil
	}
	if !x.in.is(document.List) {
		return nil, Unsupported("index", "index searches in %s", x.in.Type.Kind.Noun())
	}
	elem := &Expr{Source: "#", Type: x.in.Type.Elem}
	commonType(elem, what)
	if !alike(elem, what) {
		return nil, Unsupported("index", "index searches for %s in a list of other values", what.Type.Kind.Noun())
	}
	return &Expr{Source: fmt.Sprintf("findIndex(%s, # == %s)", x.in.orBare("[]"), what.Wrap(PrecAdd)), Prec: PrecAtom, Type: of, Nullable: true}, nil
}

// has translates has for fields that a schema declares. Variables do not
// distinguish missing from null.
func (t *Translator) has(x *call) (*Expr, error) {
	name, ok := constantText(x.Args[0])
	if !ok || x.in.Nullable || x.in.Type.Kind != document.Record || !x.in.Type.Declared {
		return nil, Unsupported("has", "has cannot distinguish missing from null here; compare with null")
	}
	of := x.in.Type.Field(name)
	if of != nil && of.Optional {
		return nil, Unsupported("has", "field %q may be missing or null, which is the same here; compare with null", name)
	}
	return Constant(strconv.FormatBool(of != nil), document.Bool), nil
}

// inside translates a test whether a string is part of another.
func (t *Translator) inside(x *call) (*Expr, error) {
	whole, err := t.argument(x)
	if err != nil {
		return nil, err
	}
	return newExpr(document.Bool, precCompare, "%s contains %s", whole.Wrap(PrecAdd), x.in.nonNull()), nil
}

// among translates IN: whether a value equals one of several, or an element of a
// list.
func (t *Translator) among(x *call) (*Expr, error) {
	value, others := x.in, x.Args
	if len(x.Args) == 2 {
		v, err := t.plainValue(x.Args[0], x.dot)
		if err != nil {
			return nil, err
		}
		value, others = v, x.Args[1:]
	}
	if len(others) != 1 || value.stream {
		return nil, Unsupported("IN", "IN takes one value")
	}
	var sum *Expr
	for _, q := range listed(others[0]) {
		other, err := t.query(q, x.dot)
		if err != nil {
			return nil, err
		}
		var one *Expr
		if other.stream {
			if value.depth > 0 {
				return nil, Unsupported("IN", "IN searches a list for each element of another")
			}
			elem := &Expr{Source: "#", Prec: PrecAtom, Type: other.Type.Elem, Nullable: other.Type.Elem.Optional}
			if one, err = t.equal(gojq.OpEq, elem, value); err == nil {
				one = newExpr(document.Bool, PrecAtom, "any(%s, %s)", other.Source, one.Source)
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
		sum = newExpr(document.Bool, PrecOr, "%s or %s", sum.Wrap(PrecOr), one.Wrap(PrecOr))
	}
	return sum, nil
}

// isEmptyStream translates isempty.
func (t *Translator) isEmptyStream(x *call) (*Expr, error) {
	if len(x.Args) != 1 {
		return nil, Unsupported("isempty", "isempty takes one argument")
	}
	c, err := t.query(x.Args[0], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, Unsupported("isempty", "%s is a single value", x.Args[0])
	}
	return newExpr(document.Bool, precCompare, "len(%s) == 0", c.Source), nil
}

// limit translates limit(n; …): the first values of a stream.
func (t *Translator) limit(x *call) (*Expr, error) {
	if len(x.Args) != 2 {
		return nil, Unsupported("limit", "limit takes two arguments")
	}
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, Unsupported("limit", "the number of values must be constant")
	}
	c, err := t.query(x.Args[1], x.dot)
	if err != nil {
		return nil, err
	}
	if !c.stream {
		return nil, Unsupported("limit", "%s is a single value", x.Args[1])
	}
	return &Expr{Source: fmt.Sprintf("take(%s, %d)", c.Source, n), Prec: PrecAtom, Type: c.Type, stream: true}, nil
}

// nth translates nth(n).
func (t *Translator) nth(x *call) (*Expr, error) {
	n, err := strconv.Atoi(x.Args[0].String())
	if err != nil || n < 0 {
		return nil, Unsupported("nth", "the index must be constant")
	}
	return element(strconv.Itoa(n))(t, x)
}

// sortedBy translates sort_by and similar functions for keys that are numbers or
// strings.
func sortedBy(format string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		key, err := t.each(x.Args[0], x.in)
		if err != nil {
			return nil, err
		}
		t.AssumeType(key, document.Float)
		plain := *key.Type
		plain.Optional = false
		if key.stream || key.Member != nil || plain.Kind != document.Unknown && !ordered(&plain) {
			return nil, Unsupported(x.Name, "%s sorts values that are neither all numbers nor all strings", x.Name)
		}
		c := x.list("sortBy(%s, " + escaped(key.Source) + ")")
		if key.Nullable { // null sorts before everything else
			list, k := x.list("%s").Source, key.Wrap(PrecAdd)
			c.Source = fmt.Sprintf("concat(filter(%s, %s == nil), sortBy(filter(%s, %s != nil), %s))", list, k, list, k, key.Source)
		}
		if format == "%s" {
			return c, nil
		}
		return &Expr{Source: fmt.Sprintf(format, c.Source), Prec: PrecAtom, Type: x.in.Type.Elem, Nullable: true}, nil
	}
}

// escaped escapes a text for a format string.
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

// replaced translates sub and gsub with constant strings.
func replaced(count string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		pattern, ok := constantText(x.Args[0])
		with, ok2 := constantText(x.Args[1])
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if !ok || !ok2 || err != nil || tree.Op != syntax.OpLiteral || tree.Flags&syntax.FoldCase != 0 {
			return nil, Unsupported(x.Name, "%s replaces a pattern; only constant strings can be translated", x.Name)
		}
		return newExpr(document.Text, PrecAtom, "replace(%s, %s, %s%s)", x.in.nonNull(), Quote(string(tree.Rune)), Quote(with), count), nil
	}
}

// present removes null from a stream.
func present(stream *Expr) *Expr {
	of := *stream.Type
	elem := *of.Elem
	elem.Optional = false
	of.Elem = &elem
	if stream.Type.Elem.Kind == document.Unknown { // infer one type for both
		of.Elem = stream.Type.Elem
	}
	return &Expr{Source: "filter(" + stream.Source + ", # != nil)", Prec: PrecAtom, Type: &of, stream: true}
}

// listedTruths returns the operands of [a, b] | all, and the function's name; nil
// for other queries.
func listedTruths(q *gojq.Query) (all []*gojq.Query, name string) {
	f := called(q.Right)
	if f == nil || f.Name != "all" && f.Name != "any" || len(f.Args) > 0 {
		return nil, ""
	}
	return listedArray(q.Left), f.Name
}

// truths translates [a, b] | all.
func (t *Translator) truths(all []*gojq.Query, name string, dot *Expr) (*Expr, error) {
	word, prec := "and", precAnd
	if name == "any" {
		word, prec = "or", PrecOr
	}
	var sum *Expr
	for _, q := range all {
		one, err := t.query(q, dot)
		switch {
		case err != nil:
			return nil, err
		case one.stream && len(all) == 1:
			list := &Expr{Source: one.Source, Prec: one.Prec, Type: one.Type}
			return quantifier(name)(t, &call{Func: &gojq.Func{Name: name}, in: list, dot: list})
		case one.stream || one.Member != nil:
			return nil, Unsupported(q, "%s returns a stream of values next to others", q)
		}
		one = t.Truth(one)
		if sum == nil {
			sum = one
			continue
		}
		sum = newExpr(document.Bool, prec, "%s %s %s", sum.Wrap(prec), word, one.Wrap(prec))
	}
	return sum, nil
}
