package jq

import (
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// mapping translates map(f).
func (t *Translator) mapping(x *call) (*Expr, error) {
	c, err := t.forEach(&Expr{Source: x.in.Source, Prec: PrecAtom, Type: x.in.Type, stream: true, depth: x.in.depth}, x.Args[0])
	if err == nil {
		c = &Expr{Source: c.Source, Prec: PrecAtom, Type: c.Type}
	}
	return c, err
}

// quantifier translates any and all: of a list, with a condition, of a stream.
func quantifier(name string) func(*Translator, *call) (*Expr, error) {
	return func(t *Translator, x *call) (*Expr, error) {
		in, condition := x.in, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}}
		switch len(x.Args) {
		case 2:
			stream, err := t.query(x.Args[0], x.dot)
			if err != nil {
				return nil, err
			}
			if !stream.stream {
				return nil, Unsupported(name, "%s iterates over %s, which is a single value", name, x.Args[0])
			}
			in, condition = stream, x.Args[1]
		case 1:
			condition = x.Args[0]
		}
		if !in.is(document.List) {
			return nil, Unsupported(name, "%s takes a list, not %s", name, in.Type.Kind.Noun())
		}
		cond, err := t.condition(condition, in)
		if err != nil {
			return nil, err
		}
		return newExpr(document.Bool, PrecAtom, "%s(%s, %s)", name, in.Source, cond), nil
	}
}

// element translates first and last: null if the list is empty or null.
func element(n string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		return &Expr{Source: x.in.getAt(n), Prec: PrecAtom, Type: x.in.Type.Elem, Nullable: true}, nil
	}
}

func (t *Translator) add(x *call) (*Expr, error) {
	elem := x.in.Type.Elem
	if elem.Kind == document.Unknown && !elem.Declared {
		elem.Kind = document.Float
	}
	text := ""
	switch elem.Kind {
	case document.Text:
		text = "join(%s, \"\")"
	case document.Int, document.Float:
		text = "sum(%s)"
	}
	if text == "" {
		return nil, Unsupported("add", "add sums values that are neither numbers nor strings")
	}
	values := x.in.Source
	if elem.Optional { // null adds nothing
		values = "filter(" + values + ", # != nil)"
	}
	of := *elem
	of.Optional = true
	return &Expr{Source: fmt.Sprintf("len(%s) == 0 ? nil : "+text, values, values), Prec: precIf, Type: &of, Nullable: true}, nil
}

// ordered reports whether the elements of a list can be sorted.
func ordered(elem *document.Type) bool {
	if elem.Kind == document.Unknown && !elem.Declared {
		elem.Kind = document.Float
	}
	return !elem.Optional && (elem.Kind == document.Int || elem.Kind == document.Float || elem.Kind == document.Text)
}

func extreme(name string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		if !ordered(x.in.Type.Elem) || x.in.Type.Elem.Kind == document.Text {
			return nil, Unsupported(name, "%s takes numbers only", name)
		}
		of := *x.in.Type.Elem
		of.Optional = true
		return &Expr{Source: fmt.Sprintf("len(%s) == 0 ? nil : %s(%s)", x.in.Source, name, x.in.Source), Prec: precIf, Type: &of, Nullable: true}, nil
	}
}

func sorted(format string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		if !ordered(x.in.Type.Elem) {
			return nil, Unsupported(x.Name, "%s sorts values that are neither numbers nor strings", x.Name)
		}
		return x.list(format), nil
	}
}

func rounded(name string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		return newExpr(document.Float, PrecAtom, "%s(%s)", name, x.in.Source), nil
	}
}

// cased translates ascii_downcase and ascii_upcase. They change only ASCII letters,
// the functions of the language all, so it applies these to ASCII letters only.
func cased(name, letters string) func(*Translator, *call) (*Expr, error) {
	return func(_ *Translator, x *call) (*Expr, error) {
		return newExpr(document.Text, PrecAtom, `join(map(split(%s, ""), # matches "[%s]" ? %s(#) : #), "")`, x.in.Source, letters, name), nil
	}
}
