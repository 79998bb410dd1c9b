package jq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/internal/convert/document"
)

// Expr is a translated expression: the text, and what is known of its value.
type Expr struct {
	Source           string
	bare             string         // the text without the parentheses around all of it; mostly empty
	Prec             int            // how tightly the outermost operator binds
	Type             *document.Type // what the value is
	Nullable         bool           // it may be null
	stream           bool           // it is a list that stands for many values, one after the other
	empty            bool           // it is the constant []
	depth            int            // how many functions of elements it stands in, where it names an element
	Unverified       bool           // a schema says what it is, but need not be right: a model answers
	ComparedWithNull *bool          // set where somebody expects null here; nil where nobody asks
	Root             *document.Type // of the data that it is a part of; nil where it is no part of data
	IsObject         bool           // it is a record for certain, though all of it cannot be written
	Member           func(name string) (*Expr, error)
}

// How tightly operators bind, loosest first.
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

// Wrap is the text as an operand of an operator.
func (c *Expr) Wrap(prec int) string {
	if c.Prec >= prec {
		return c.Source
	}
	return "(" + c.Source + ")"
}

// nonNull is the text as an operand of contains and its like, which take null for a
// text without anything; jq fails, as + does.
func (c *Expr) nonNull() string {
	if !c.Nullable {
		return c.Wrap(PrecAdd)
	}
	return "(" + c.Wrap(PrecAdd) + ` + "")`
}

// Text is the text where nothing stands beside it.
func (c *Expr) Text() string {
	if c.bare != "" {
		return c.bare
	}
	return c.Source
}

// or is the text with a value in place of null.
func (c *Expr) or(fallback string) string {
	if !c.Nullable {
		return c.Wrap(PrecAtom)
	}
	return "(" + c.Wrap(PrecAtom) + " ?? " + fallback + ")"
}

// orBare is or for an argument, which needs no parentheses.
func (c *Expr) orBare(fallback string) string {
	if !c.Nullable {
		return c.Source
	}
	return c.Wrap(PrecAtom) + " ?? " + fallback
}

// Constant and made make codes of texts.
func Constant(text string, s document.Kind) *Expr {
	return &Expr{Source: text, Prec: PrecAtom, Type: &document.Type{Kind: s, Declared: true}}
}

func newExpr(s document.Kind, prec int, format string, args ...any) *Expr {
	return &Expr{Source: fmt.Sprintf(format, args...), Prec: prec, Type: &document.Type{Kind: s, Declared: true}}
}

// is says what a value must be for an expression to make sense. It tells whether
// it can be.
func (c *Expr) is(s document.Kind) bool {
	if c.Type.Kind == document.Unknown && !c.Type.Declared && !(c.Type.Element && s == document.List) {
		c.Type.Kind = s
		if s == document.List {
			c.Type.Elem = &document.Type{Element: c.Type.TopLevel}
		}
	}
	return c.Type.Kind == s || s == document.Float && c.Type.Kind == document.Int
}

// number tells whether the value can be a number.
func (c *Expr) number() bool { return c.is(document.Float) }

// Error tells why an expression cannot be translated, and at which word.
type Error struct{ Word, why string }

// Error is the reason.
func (e *Error) Error() string { return e.why }

func Unsupported(word any, format string, args ...any) error {
	return &Error{fmt.Sprint(word), fmt.Sprintf(format, args...)}
}

// Translator translates expressions.
type Translator struct {
	Root      *Expr             // the data that expressions see as .
	Vars      map[string]*Expr  // what is bound to names, without $
	depth     int               // how many functions of elements we are in
	Functions map[string]string // the workflow's functions that are expressions, by their names
	Guess     bool              // a first look: shapes are still being found
	Strict    bool              // a look at which nothing is taken for what it is only mostly
}

// AssumeType says what a value is of which nothing else says it: a condition's is a
// truth value, for example. In the first looks nothing is, for another expression
// may know better. It tells whether something is known of the value now.
func (t *Translator) AssumeType(c *Expr, s document.Kind) bool {
	if c.Type.Kind == document.Unknown && !c.Type.Declared && !t.Strict {
		c.is(s)
	}
	return c.Type.Kind != document.Unknown
}

// parseJQ reads an expression; its error is a *jqError.
func parseJQ(text string) (*gojq.Query, error) {
	if len(text) > longestJQ {
		return nil, Unsupported("", "it is longer than %d characters", longestJQ)
	}
	q, err := gojq.Parse(text)
	var at *gojq.ParseError
	switch {
	case err == nil && q.Term == nil && q.Left == nil && len(q.FuncDefs) == 0:
		return nil, Unsupported("", "the expression is empty")
	case err == nil:
		return q, nil
	case errors.As(err, &at) && at.Token != "":
		return nil, Unsupported(at.Token, "it is no jq expression: unexpected %q", at.Token)
	}
	return nil, Unsupported("", "it is no jq expression: something is missing or not closed")
}

// Translate translates an expression that gives one value.
func (t *Translator) Translate(text string) (*Expr, error) {
	if name, ok := strings.CutPrefix(strings.TrimSpace(text), "fn:"); ok {
		operation := t.Functions[strings.TrimSpace(name)]
		if operation == "" || strings.HasPrefix(operation, "fn:") {
			return nil, Unsupported(name, "there is no function %q that is an expression", name)
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
		return nil, Unsupported("", "it gives any number of values, not one")
	case c.Member != nil:
		return nil, Unsupported("", "it takes all of the data at once; name the parts that are needed")
	}
	return c, nil
}

// longestJQ is the longest expression that is read, in bytes: its parts are
// translated by functions that call each other as deeply as they are nested.
const longestJQ = 8000

// longestFormula is the longest expression that a document may hold, in bytes.
const longestFormula = 4000

// each translates a function of the elements of a list.
func (t *Translator) each(q *gojq.Query, list *Expr) (*Expr, error) {
	t.depth++
	defer func() { t.depth-- }()
	elem := list.Type.Elem
	return t.query(q, &Expr{Source: "#", Prec: PrecAtom, Type: elem, Nullable: elem.Optional, depth: t.depth})
}

// query translates a query whose input is dot. Some translations name a part
// twice, so they could grow with every part around them.
func (t *Translator) query(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.anyQuery(q, dot)
	if err == nil && len(c.Source) > longestFormula {
		return nil, Unsupported("", "its translation would be longer than the %d characters that an expression has at most", longestFormula)
	}
	return c, err
}

func (t *Translator) anyQuery(q *gojq.Query, dot *Expr) (*Expr, error) {
	switch {
	case len(q.FuncDefs) > 0:
		return nil, Unsupported(q.FuncDefs[0].Name, "functions cannot be defined in an expression")
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
		return nil, Unsupported(",", "it gives several values, not one")
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

// single translates a part that gives exactly one value.
func (t *Translator) single(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.query(q, dot)
	if err == nil && c.stream {
		return nil, Unsupported(q, "%s gives any number of values where one is needed", q)
	}
	return c, err
}

// plainValue is single for a part that is not all of the data.
func (t *Translator) plainValue(q *gojq.Query, dot *Expr) (*Expr, error) {
	c, err := t.single(q, dot)
	if err == nil && c.Member != nil {
		return nil, Unsupported(q, "%s is all of the data at once; name the parts that are needed", q)
	}
	return c, err
}

// bind translates A as $name | B.
func (t *Translator) bind(q *gojq.Query, dot *Expr) (*Expr, error) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return nil, Unsupported("as", "only as $name can be translated")
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

// pipe translates A | B: once, or for each of the values of A.
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

// forEach hands each value of a stream on: map, or filter for select.
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
		return nil, Unsupported(q, "%s goes through lists inside of lists", q)
	case one.Source == "#":
		return stream, nil
	}
	return &Expr{Source: fmt.Sprintf("map(%s, %s)", stream.Source, one.Argument()), Prec: PrecAtom, Type: &document.Type{Kind: document.List, Elem: nullable(one)}, stream: true}, nil
}

// Argument is the text as an argument; a record needs parentheses there.
func (c *Expr) Argument() string {
	if strings.HasPrefix(c.Source, "{") {
		return "(" + c.Source + ")"
	}
	return c.Source
}

// nullable is the shape of a value that may be null.
func nullable(c *Expr) *document.Type {
	if !c.Nullable || c.Type.Optional {
		return c.Type
	}
	s := *c.Type
	s.Optional = true
	return &s
}

// condition is the truth of a function of elements.
func (t *Translator) condition(q *gojq.Query, list *Expr) (string, error) {
	one, err := t.each(q, list)
	if err != nil {
		return "", err
	}
	if one.stream || one.Member != nil {
		return "", Unsupported(q, "%s is no condition", q)
	}
	return t.Truth(one).Source, nil
}

// Truth is whether a value counts as true: all but null and false do.
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

// called is the function that a query is a bare call of.
func called(q *gojq.Query) *gojq.Func {
	if q.Term != nil && q.Term.Type == gojq.TermTypeFunc && len(q.Term.SuffixList) == 0 {
		return q.Term.Func
	}
	return nil
}

// Quote is a text as an expression writes it. ${ would be taken for an
// environment variable.
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

// QuoteExpr is a text as a code.
func QuoteExpr(s string) *Expr {
	c := Constant(Quote(s), document.Text)
	if strings.Contains(s, "${") {
		c.Prec = PrecAdd
	}
	return c
}

// ReservedNames are the functions that translations call: a variable of the name
// would hide one.
func ReservedNames() []string {
	return []string{"abs", "all", "any", "ceil", "concat", "filter", "find", "findIndex", "float", "floor", "get", "int", "join", "keys", "len", "lower", "map", "max",
		"min", "replace", "reverse", "round", "sort", "sortBy", "split", "string", "sum", "take", "toJSON", "trim", "trimPrefix", "trimSuffix", "uniq", "upper"}
}
