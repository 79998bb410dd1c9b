package convert

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// decide translates if … then … elif … else … end.
func (t *jq) decide(x *gojq.If, dot *translatedExpr) (*translatedExpr, error) {
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
	if then.member != nil || otherwise.member != nil {
		return nil, unsupportedJQ("if", "a branch of it gives all of the data at once")
	}
	of, ok := join(then.of, otherwise.of)
	if !ok {
		return nil, unsupportedJQ("if", "it gives %s or %s, and a variable is of one type", then.of.sort.noun(), otherwise.of.sort.noun())
	}
	return &translatedExpr{text: fmt.Sprintf("%s ? %s : %s", t.truth(cond).wrap(precOr), then.wrap(precOr), otherwise.wrap(precIf)),
		prec: precIf, of: of, null: then.null || otherwise.null}, nil
}

// array translates […]: of streams a list, of single values their list.
func (t *jq) array(x *gojq.Array, dot *translatedExpr) (*translatedExpr, error) {
	if x == nil || x.Query == nil {
		c := made(isList, precAtom, "[]")
		c.empty, c.of.elem = true, &inferredType{}
		return c, nil
	}
	var items []string
	elem := &inferredType{}
	for _, q := range listed(x.Query) {
		c, err := t.query(q, dot)
		switch {
		case err != nil:
			return nil, err
		case c.member != nil:
			return nil, unsupportedJQ(q, "%s is all of the data at once", q)
		case c.stream && len(listed(x.Query)) == 1:
			return &translatedExpr{text: c.text, prec: c.prec, of: c.of, depth: c.depth}, nil
		case c.stream:
			return nil, unsupportedJQ(q, "%s gives any number of values beside others", q)
		}
		var ok bool
		if elem, ok = join(elem, nullable(c)); !ok {
			return nil, unsupportedJQ(q, "a list holds values of one type")
		}
		items = append(items, c.inCall())
	}
	c := made(isList, precAtom, "[%s]", strings.Join(items, ", "))
	c.of.elem = elem
	return c, nil
}

// listed are the parts of a, b, c.
func listed(q *gojq.Query) []*gojq.Query {
	if q.Term == nil && q.Op == gojq.OpComma {
		return append(listed(q.Left), listed(q.Right)...)
	}
	return []*gojq.Query{q}
}

// object translates {a: 1, b}.
func (t *jq) object(x *gojq.Object, dot *translatedExpr) (*translatedExpr, error) {
	var items []string
	of := &inferredType{sort: isRecord, declared: true}
	for _, kv := range x.KeyVals {
		key, value := kv.Key, kv.Val
		if kv.KeyString != nil && len(kv.KeyString.Queries) == 0 {
			key = kv.KeyString.Str
		}
		if key == "" {
			return nil, unsupportedJQ("{", "a key of a record is worked out")
		}
		var c *translatedExpr
		var err error
		switch {
		case value != nil:
			c, err = t.plainValue(value, dot)
		case strings.HasPrefix(key, "$"):
			c, err = t.variable(key)
			key = key[1:]
		default:
			c, err = t.field(dot, key)
		}
		if err != nil {
			return nil, err
		}
		if c.member != nil {
			return nil, unsupportedJQ(key, "%s is all of the data at once", key)
		}
		if of.field(key) != nil {
			return nil, unsupportedJQ(key, "the key %s stands twice", key)
		}
		of.fields = append(of.fields, &field{key, nullable(c)})
		items = append(items, fmt.Sprintf("%s: %s", quoted(key), c.wrap(precOr)))
	}
	return &translatedExpr{text: "{" + strings.Join(items, ", ") + "}", prec: precAtom, of: of}, nil
}
