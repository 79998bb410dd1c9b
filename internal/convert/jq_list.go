package convert

import (
	"fmt"

	"github.com/itchyny/gojq"
)

// mapping translates map(f), all of whose results are the new list.
func (t *jq) mapping(x *call) (*translatedExpr, error) {
	c, err := t.forEach(&translatedExpr{text: x.in.text, prec: precAtom, of: x.in.of, stream: true, depth: x.in.depth}, x.Args[0])
	if err == nil {
		c = &translatedExpr{text: c.text, prec: precAtom, of: c.of}
	}
	return c, err
}

// quantifier translates any and all: of a list, by a condition, of a stream.
func quantifier(name string) func(*jq, *call) (*translatedExpr, error) {
	return func(t *jq, x *call) (*translatedExpr, error) {
		in, condition := x.in, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}}
		switch len(x.Args) {
		case 2:
			stream, err := t.query(x.Args[0], x.dot)
			if err != nil {
				return nil, err
			}
			if !stream.stream {
				return nil, unsupportedJQ(name, "%s goes through %s, which is one value", name, x.Args[0])
			}
			in, condition = stream, x.Args[1]
		case 1:
			condition = x.Args[0]
		}
		if !in.is(isList) {
			return nil, unsupportedJQ(name, "%s works on a list, and this is %s", name, in.of.sort.noun())
		}
		cond, err := t.condition(condition, in)
		if err != nil {
			return nil, err
		}
		return made(isBool, precAtom, "%s(%s, %s)", name, in.text, cond), nil
	}
}

// element translates first and last: null where the list is empty or null.
func element(n string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		return &translatedExpr{text: x.in.getAt(n), prec: precAtom, of: x.in.of.elem, null: true}, nil
	}
}

func (t *jq) add(x *call) (*translatedExpr, error) {
	elem := x.in.of.elem
	if elem.sort == unknown && !elem.declared {
		elem.sort = isNumber
	}
	text := ""
	switch elem.sort {
	case isText:
		text = "join(%s, \"\")"
	case isInt, isNumber:
		text = "sum(%s)"
	}
	if text == "" {
		return nil, unsupportedJQ("add", "add sums up values that are neither numbers nor texts")
	}
	values := x.in.text
	if elem.optional { // null adds nothing
		values = "filter(" + values + ", # != nil)"
	}
	of := *elem
	of.optional = true
	return &translatedExpr{text: fmt.Sprintf("len(%s) == 0 ? nil : "+text, values, values), prec: precIf, of: &of, null: true}, nil
}

// ordered tells whether the elements of a list can be put in order.
func ordered(elem *inferredType) bool {
	if elem.sort == unknown && !elem.declared {
		elem.sort = isNumber
	}
	return !elem.optional && (elem.sort == isInt || elem.sort == isNumber || elem.sort == isText)
}

func extreme(name string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		if !ordered(x.in.of.elem) || x.in.of.elem.sort == isText {
			return nil, unsupportedJQ(name, "%s looks at values that are no numbers", name)
		}
		of := *x.in.of.elem
		of.optional = true
		return &translatedExpr{text: fmt.Sprintf("len(%s) == 0 ? nil : %s(%s)", x.in.text, name, x.in.text), prec: precIf, of: &of, null: true}, nil
	}
}

func sorted(format string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		if !ordered(x.in.of.elem) {
			return nil, unsupportedJQ(x.Name, "%s puts values in order that are neither numbers nor texts", x.Name)
		}
		return x.list(format), nil
	}
}

func rounded(name string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		return made(isNumber, precAtom, "%s(%s)", name, x.in.text), nil
	}
}

// cased translates ascii_downcase and ascii_upcase, which leave all other letters
// alone. The functions of expressions change those, too, so they see only single
// letters that are in the range.
func cased(name, letters string) func(*jq, *call) (*translatedExpr, error) {
	return func(_ *jq, x *call) (*translatedExpr, error) {
		return made(isText, precAtom, `join(map(split(%s, ""), # matches "[%s]" ? %s(#) : #), "")`, x.in.text, letters, name), nil
	}
}
