package jq

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// decide translates if … then … elif … else … end.
func (t *Translator) decide(x *gojq.If, dot *Expr) (*Expr, error) {
	cond, err := t.plainValue(x.Cond, dot)
	if err != nil {
		return nil, err
	}
	then, err := t.single(x.Then, dot)
	if err != nil {
		return nil, err
	}
	otherwise := dot
	switch {
	case len(x.Elif) > 0:
		otherwise, err = t.decide(&gojq.If{Cond: x.Elif[0].Cond, Then: x.Elif[0].Then, Elif: x.Elif[1:], Else: x.Else}, dot)
	case x.Else != nil:
		otherwise, err = t.single(x.Else, dot)
	}
	if err != nil {
		return nil, err
	}
	if then.Member != nil || otherwise.Member != nil {
		return nil, Unsupported("if", "a branch returns the whole data")
	}
	of, ok := document.Join(then.Type, otherwise.Type)
	if !ok {
		return nil, Unsupported("if", "it returns %s or %s; a variable has one type", then.Type.Kind.Noun(), otherwise.Type.Kind.Noun())
	}
	return &Expr{Source: fmt.Sprintf("%s ? %s : %s", t.Truth(cond).Wrap(PrecOr), then.Wrap(PrecOr), otherwise.Wrap(precIf)),
		Prec: precIf, Type: of, Nullable: then.Nullable || otherwise.Nullable}, nil
}

// array translates […].
func (t *Translator) array(x *gojq.Array, dot *Expr) (*Expr, error) {
	if x == nil || x.Query == nil {
		c := newExpr(document.List, PrecAtom, "[]")
		c.empty, c.Type.Elem = true, &document.Type{}
		return c, nil
	}
	var items []string
	elem := &document.Type{}
	for _, q := range listed(x.Query) {
		c, err := t.query(q, dot)
		switch {
		case err != nil:
			return nil, err
		case c.Member != nil:
			return nil, Unsupported(q, "%s is the whole data", q)
		case c.stream && len(listed(x.Query)) == 1:
			return &Expr{Source: c.Source, Prec: c.Prec, Type: c.Type, depth: c.depth}, nil
		case c.stream:
			return nil, Unsupported(q, "%s returns a stream of values next to others", q)
		}
		var ok bool
		if elem, ok = document.Join(elem, nullable(c)); !ok {
			return nil, Unsupported(q, "elements of a list have one type")
		}
		items = append(items, c.Argument())
	}
	c := newExpr(document.List, PrecAtom, "[%s]", strings.Join(items, ", "))
	c.Type.Elem = elem
	return c, nil
}

// listed returns the operands of a, b, c.
func listed(q *gojq.Query) []*gojq.Query {
	if q.Term == nil && q.Op == gojq.OpComma {
		return append(listed(q.Left), listed(q.Right)...)
	}
	return []*gojq.Query{q}
}

// object translates {a: 1, b}.
func (t *Translator) object(x *gojq.Object, dot *Expr) (*Expr, error) {
	var items []string
	of := &document.Type{Kind: document.Record, Declared: true}
	for _, kv := range x.KeyVals {
		key, value := kv.Key, kv.Val
		if kv.KeyString != nil && len(kv.KeyString.Queries) == 0 {
			key = kv.KeyString.Str
		}
		if key == "" {
			return nil, Unsupported("{", "a key of a record is an expression")
		}
		var c *Expr
		var err error
		switch {
		case value != nil:
			c, err = t.plainValue(value, dot)
		case strings.HasPrefix(key, "$"):
			c, err = t.variable(key)
			key = key[1:]
		default:
			c, err = t.Field(dot, key)
		}
		if err != nil {
			return nil, err
		}
		if c.Member != nil {
			return nil, Unsupported(key, "%s is the whole data", key)
		}
		if of.Field(key) != nil {
			return nil, Unsupported(key, "duplicate key %s", key)
		}
		of.Fields = append(of.Fields, &document.Field{Name: key, Type: nullable(c)})
		items = append(items, fmt.Sprintf("%s: %s", Quote(key), c.Wrap(PrecOr)))
	}
	return &Expr{Source: "{" + strings.Join(items, ", ") + "}", Prec: PrecAtom, Type: of}, nil
}
