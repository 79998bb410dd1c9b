package jq

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// Expr is a translated expression and its type.
type Expr struct {
	Source           string                           // in the language
	bare             string                           // without the parentheses around all of it; usually empty
	Prec             int                              // precedence of the outermost operator
	Type             *document.Type                   // type of the value
	Nullable         bool                             // may be null
	stream           bool                             // a list that represents a jq stream of values
	empty            bool                             // the constant []
	depth            int                              // of an element: the nesting of functions of elements around it
	Unverified       bool                             // of a type that the value may violate: a model returns it
	ComparedWithNull *bool                            // set if the expression is compared with null; may be nil
	Root             *document.Type                   // type of the data that it is a part of; nil if it is not data
	IsObject         bool                             // a record, though the whole cannot be expressed
	Member           func(name string) (*Expr, error) // returns a part of a value that cannot be expressed as a whole; nil for others
}

// The precedences of operators, loosest first.
const (
	precIf = iota
	PrecOr
	precAnd
	precCompare
	PrecAdd
	PrecMultiply
	PrecUnary
	PrecAtom
)

// Wrap returns the source as an operand of an operator.
func (c *Expr) Wrap(prec int) string {
	if c.Prec >= prec {
		return c.Source
	}
	return "(" + c.Source + ")"
}

// nonNull returns the source as an operand of contains and similar operators. They
// read null as an empty string, while jq fails, as + does.
func (c *Expr) nonNull() string {
	if !c.Nullable {
		return c.Wrap(PrecAdd)
	}
	return "(" + c.Wrap(PrecAdd) + ` + "")`
}

// Text returns the source where it needs no parentheses.
func (c *Expr) Text() string {
	if c.bare != "" {
		return c.bare
	}
	return c.Source
}

// or returns the source with a fallback for null.
func (c *Expr) or(fallback string) string {
	if !c.Nullable {
		return c.Wrap(PrecAtom)
	}
	return "(" + c.Wrap(PrecAtom) + " ?? " + fallback + ")"
}

// orBare is like or for an argument, which needs no parentheses.
func (c *Expr) orBare(fallback string) string {
	if !c.Nullable {
		return c.Source
	}
	return c.Wrap(PrecAtom) + " ?? " + fallback
}

// Constant returns an expression of a known type that is never null.
func Constant(text string, s document.Kind) *Expr {
	return &Expr{Source: text, Prec: PrecAtom, Type: &document.Type{Kind: s, Declared: true}}
}

func newExpr(s document.Kind, prec int, format string, args ...any) *Expr {
	return &Expr{Source: fmt.Sprintf(format, args...), Prec: prec, Type: &document.Type{Kind: s, Declared: true}}
}

// is infers that the value has a type if none is known, and reports whether it can
// have it.
func (c *Expr) is(s document.Kind) bool {
	if c.Type.Kind == document.Unknown && !c.Type.Declared && !(c.Type.Element && s == document.List) {
		c.Type.Kind = s
		if s == document.List {
			c.Type.Elem = &document.Type{Element: c.Type.TopLevel}
		}
	}
	return c.Type.Kind == s || s == document.Float && c.Type.Kind == document.Int
}

// number reports whether the value can be a number.
func (c *Expr) number() bool { return c.is(document.Float) }

// Argument returns the source as an argument; a record needs parentheses there.
func (c *Expr) Argument() string {
	if strings.HasPrefix(c.Source, "{") {
		return "(" + c.Source + ")"
	}
	return c.Source
}

// nullable returns the type of an expression, optional if it may be null.
func nullable(c *Expr) *document.Type {
	if !c.Nullable || c.Type.Optional {
		return c.Type
	}
	s := *c.Type
	s.Optional = true
	return &s
}

// Quote returns a string literal. It splits ${, which would be an environment
// variable.
func Quote(s string) string {
	var b strings.Builder
	for i, part := range strings.Split(s, "${") {
		if i > 0 {
			b.WriteString(`$" + "{`)
		}
		q := strconv.Quote(part)
		b.WriteString(q[1 : len(q)-1])
	}
	return `"` + b.String() + `"`
}

// QuoteExpr returns a string literal as an expression.
func QuoteExpr(s string) *Expr {
	c := Constant(Quote(s), document.Text)
	if strings.Contains(s, "${") {
		c.Prec = PrecAdd
	}
	return c
}

// ReservedNames returns the functions that translations call. A variable with such
// a name would hide the function.
func ReservedNames() []string {
	return []string{"abs", "all", "any", "ceil", "concat", "filter", "find", "findIndex", "float", "floor", "get", "int", "join", "keys", "len", "lower", "map", "max",
		"min", "replace", "reverse", "round", "sort", "sortBy", "split", "string", "sum", "take", "toJSON", "trim", "trimPrefix", "trimSuffix", "uniq", "upper"}
}
