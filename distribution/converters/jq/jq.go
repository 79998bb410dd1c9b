// Package jq translates jq expressions to expressions of the language, if the
// translation gives the same result for every input, and infers the types of the
// data that they read.
package jq

import (
	"errors"
	"fmt"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// Error is the reason why an expression cannot be translated, and the word that
// causes it.
type Error struct{ Word, why string }

// Error returns the reason.
func (e *Error) Error() string { return e.why }

// Unsupported returns an *Error at a word.
func Unsupported(word any, format string, args ...any) error {
	return &Error{fmt.Sprint(word), fmt.Sprintf(format, args...)}
}

// Translator translates expressions.
type Translator struct {
	Root      *Expr             // the data, which expressions read as .
	Vars      map[string]*Expr  // variables, without $
	depth     int               // nesting of functions of elements
	Functions map[string]string // functions that are expressions, by name
	Guess     bool              // an inference pass: types may be incomplete
	Strict    bool              // an early pass: assume no types
}

// AssumeType infers a type that its use suggests, such as a boolean for a
// condition, if nothing is known of it and the pass is not strict: another
// expression may determine it. It reports whether the type is known now.
func (t *Translator) AssumeType(c *Expr, s document.Kind) bool {
	if c.Type.Kind == document.Unknown && !c.Type.Declared && !t.Strict {
		c.is(s)
	}
	return c.Type.Kind != document.Unknown
}

// parseJQ parses an expression; its error is an *Error.
func parseJQ(text string) (*gojq.Query, error) {
	if len(text) > maxInput {
		return nil, Unsupported("", "longer than %d characters", maxInput)
	}
	q, err := gojq.Parse(text)
	var at *gojq.ParseError
	switch {
	case err == nil && q.Term == nil && q.Left == nil && len(q.FuncDefs) == 0:
		return nil, Unsupported("", "empty expression")
	case err == nil:
		return q, nil
	case errors.As(err, &at) && at.Token != "":
		return nil, Unsupported(at.Token, "invalid jq: unexpected %q", at.Token)
	}
	return nil, Unsupported("", "invalid jq: unexpected end")
}

// Translate translates an expression that returns one value.
func (t *Translator) Translate(text string) (*Expr, error) {
	if name, ok := strings.CutPrefix(strings.TrimSpace(text), "fn:"); ok {
		operation := t.Functions[strings.TrimSpace(name)]
		if operation == "" || strings.HasPrefix(operation, "fn:") {
			return nil, Unsupported(name, "unknown function %q, or not an expression", name)
		}
		text = operation
	}
	q, err := parseJQ(text)
	if err != nil {
		return nil, err
	}
	c, err := t.query(q, t.Root)
	if err != nil {
		return nil, err
	}
	switch {
	case c.stream:
		return nil, Unsupported("", "it returns a stream of values, not one")
	case c.Member != nil:
		return nil, Unsupported("", "it reads the whole data; read only the required parts")
	}
	return c, nil
}

// maxInput is the size in bytes up to which expressions are parsed. The
// translation recurses as deeply as they are nested.
const maxInput = 8000

// maxExpression is the maximum size in bytes of an expression in a document.
const maxExpression = 4000

// each translates a function of the elements of a list.
func (t *Translator) each(q *gojq.Query, list *Expr) (*Expr, error) {
	t.depth++
	defer func() { t.depth-- }()
	elem := list.Type.Elem
	return t.query(q, &Expr{Source: "#", Prec: PrecAtom, Type: elem, Nullable: elem.Optional, depth: t.depth})
}

// query translates a query with input dot. It limits the size of the result, as
// some translations repeat an operand, so that nested ones grow exponentially.
func (t *Translator) query(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.anyQuery(q, dot)
	if err == nil && len(c.Source) > maxExpression {
		return nil, Unsupported("", "its translation exceeds the limit of %d characters", maxExpression)
	}
	return c, err
}

func (t *Translator) anyQuery(q *gojq.Query, dot *Expr) (*Expr, error) {
	switch {
	case len(q.FuncDefs) > 0:
		return nil, Unsupported(q.FuncDefs[0].Name, "function definitions have no counterpart")
	case q.Term != nil:
		return t.term(q.Term, dot)
	case len(q.Patterns) > 0:
		return t.bind(q, dot)
	}
	switch q.Op {
	case gojq.OpPipe:
		return t.pipe(q, dot)
	case gojq.OpAlt:
		return t.alternative(q, dot)
	case gojq.OpComma:
		return nil, Unsupported(",", "it returns several values, not one")
	}
	a, err := t.single(q.Left, dot)
	if err != nil {
		return nil, err
	}
	b, err := t.single(q.Right, dot)
	if err != nil {
		return nil, err
	}
	return t.operator(q.Op, a, b)
}

// single translates a query that returns exactly one value.
func (t *Translator) single(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.query(q, dot)
	if err == nil && c.stream {
		return nil, Unsupported(q, "%s returns a stream of values where one is needed", q)
	}
	return c, err
}

// plainValue is like single but rejects the whole data.
func (t *Translator) plainValue(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.single(q, dot)
	if err == nil && c.Member != nil {
		return nil, Unsupported(q, "%s is the whole data; read only the required parts", q)
	}
	return c, err
}

// bind translates A as $name | B.
func (t *Translator) bind(q *gojq.Query, dot *Expr) (*Expr, error) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return nil, Unsupported("as", "only bindings to a single $name have a counterpart")
	}
	v, err := t.single(q.Left, dot)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(q.Patterns[0].Name, "$")
	before, had := t.Vars[name]
	t.Vars[name] = v
	defer func() {
		if delete(t.Vars, name); had {
			t.Vars[name] = before
		}
	}()
	return t.query(q.Right, dot)
}

// pipe translates A | B.
func (t *Translator) pipe(q *gojq.Query, dot *Expr) (*Expr, error) {
	if all, name := listedTruths(q); all != nil {
		return t.truths(all, name, dot)
	}
	left, err := t.query(q.Left, dot)
	if err != nil || !left.stream {
		if err != nil {
			return nil, err
		}
		return t.query(q.Right, left)
	}
	return t.forEach(left, q.Right)
}

// forEach applies a query to each value of a stream: map, or filter for select.
func (t *Translator) forEach(stream *Expr, q *gojq.Query) (*Expr, error) {
	if q.Term == nil && q.Op == gojq.OpPipe && len(q.Patterns) == 0 {
		first, err := t.forEach(stream, q.Left)
		if err != nil {
			return nil, err
		}
		return t.forEach(first, q.Right)
	}
	f := called(q)
	if f != nil && (f.Name == "values" && len(f.Args) == 0 || f.Name == "select" && len(f.Args) == 1 && f.Args[0].String() == ". != null") {
		return present(stream), nil
	}
	if f != nil && f.Name == "select" && len(f.Args) == 1 {
		keep, err := t.condition(f.Args[0], stream)
		if err != nil {
			return nil, err
		}
		return &Expr{Source: fmt.Sprintf("filter(%s, %s)", stream.Source, keep), Prec: PrecAtom, Type: stream.Type, stream: true}, nil
	}
	one, err := t.each(q, stream)
	switch {
	case err != nil:
		return nil, err
	case one.stream:
		return nil, Unsupported(q, "%s iterates over nested lists", q)
	case one.Source == "#":
		return stream, nil
	}
	return &Expr{Source: fmt.Sprintf("map(%s, %s)", stream.Source, one.Argument()), Prec: PrecAtom, Type: &document.Type{Kind: document.List, Elem: nullable(one)}, stream: true}, nil
}

// condition translates a predicate of elements.
func (t *Translator) condition(q *gojq.Query, list *Expr) (string, error) {
	one, err := t.each(q, list)
	if err != nil {
		return "", err
	}
	if one.stream || one.Member != nil {
		return "", Unsupported(q, "%s is not a condition", q)
	}
	return t.Truth(one).Source, nil
}

// Truth returns whether a value counts as true: all but null and false do.
func (t *Translator) Truth(c *Expr) *Expr {
	switch {
	case c.Type.Kind == document.Unknown && !c.Type.Declared:
		if !t.AssumeType(c, document.Bool) {
			return newExpr(document.Bool, PrecAtom, "%s", c.Source)
		}
		return t.Truth(c)
	case c.Type.Kind == document.Bool && c.Nullable:
		yes := newExpr(document.Bool, PrecAtom, "(%s ?? false)", c.Wrap(PrecAtom))
		yes.bare = c.Wrap(PrecAtom) + " ?? false"
		return yes
	case c.Type.Kind == document.Bool:
		return c
	case c.Nullable:
		return newExpr(document.Bool, precCompare, "%s != nil", c.Wrap(PrecAdd))
	}
	return Constant("true", document.Bool)
}

// called returns the function if the query is only a call.
func called(q *gojq.Query) *gojq.Func {
	if q.Term != nil && q.Term.Type == gojq.TermTypeFunc && len(q.Term.SuffixList) == 0 {
		return q.Term.Func
	}
	return nil
}
