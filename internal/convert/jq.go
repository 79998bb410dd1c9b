package convert

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// translatedExpr is a translated expression: the text, and what is known of its value.
type translatedExpr struct {
	text   string
	bare   string        // the text without the parentheses around all of it; mostly empty
	prec   int           // how tightly the outermost operator binds
	of     *inferredType // what the value is
	null   bool          // it may be null
	stream bool          // it is a list that stands for many values, one after the other
	empty  bool          // it is the constant []
	depth  int           // how many functions of elements it stands in, where it names an element
	loose  bool          // a schema says what it is, but need not be right: a model answers
	nulls  *bool         // set where somebody expects null here; nil where nobody asks
	root   *inferredType // of the data that it is a part of; nil where it is no part of data
	object bool          // it is a record for certain, though all of it cannot be written
	member func(name string) (*translatedExpr, error)
}

// How tightly operators bind, loosest first.
const (
	precIf = iota
	precOr
	precAnd
	precCompare
	precAdd
	precMultiply
	precUnary
	precAtom
)

// wrap is the text as an operand of an operator.
func (c *translatedExpr) wrap(prec int) string {
	if c.prec >= prec {
		return c.text
	}
	return "(" + c.text + ")"
}

// nonNull is the text as an operand of contains and its like, which take null for a
// text without anything; jq fails, as + does.
func (c *translatedExpr) nonNull() string {
	if !c.null {
		return c.wrap(precAdd)
	}
	return "(" + c.wrap(precAdd) + ` + "")`
}

// whole is the text where nothing stands beside it.
func (c *translatedExpr) whole() string {
	if c.bare != "" {
		return c.bare
	}
	return c.text
}

// or is the text with a value in place of null.
func (c *translatedExpr) or(fallback string) string {
	if !c.null {
		return c.wrap(precAtom)
	}
	return "(" + c.wrap(precAtom) + " ?? " + fallback + ")"
}

// orBare is or for an argument, which needs no parentheses.
func (c *translatedExpr) orBare(fallback string) string {
	if !c.null {
		return c.text
	}
	return c.wrap(precAtom) + " ?? " + fallback
}

// constant and made make codes of texts.
func constant(text string, s typeKind) *translatedExpr {
	return &translatedExpr{text: text, prec: precAtom, of: &inferredType{sort: s, declared: true}}
}

func made(s typeKind, prec int, format string, args ...any) *translatedExpr {
	return &translatedExpr{text: fmt.Sprintf(format, args...), prec: prec, of: &inferredType{sort: s, declared: true}}
}

// is says what a value must be for an expression to make sense. It tells whether
// it can be.
func (c *translatedExpr) is(s typeKind) bool {
	if c.of.sort == unknown && !c.of.declared && !(c.of.inner && s == isList) {
		c.of.sort = s
		if s == isList {
			c.of.elem = &inferredType{inner: c.of.top}
		}
	}
	return c.of.sort == s || s == isNumber && c.of.sort == isInt
}

// number tells whether the value can be a number.
func (c *translatedExpr) number() bool { return c.is(isNumber) }

// jqError tells why an expression cannot be translated, and at which word.
type jqError struct{ word, why string }

// Error is the reason.
func (e *jqError) Error() string { return e.why }

func unsupportedJQ(word any, format string, args ...any) error {
	return &jqError{fmt.Sprint(word), fmt.Sprintf(format, args...)}
}

// jq translates expressions.
type jq struct {
	root   *translatedExpr            // the data that expressions see as .
	vars   map[string]*translatedExpr // what is bound to names, without $
	depth  int                        // how many functions of elements we are in
	named  map[string]string          // the workflow's functions that are expressions, by their names
	guess  bool                       // a first look: shapes are still being found
	strict bool                       // a look at which nothing is taken for what it is only mostly
}

// assumeType says what a value is of which nothing else says it: a condition's is a
// truth value, for example. In the first looks nothing is, for another expression
// may know better. It tells whether something is known of the value now.
func (t *jq) assumeType(c *translatedExpr, s typeKind) bool {
	if c.of.sort == unknown && !c.of.declared && !t.strict {
		c.is(s)
	}
	return c.of.sort != unknown
}

// parseJQ reads an expression; its error is a *jqError.
func parseJQ(text string) (*gojq.Query, error) {
	if len(text) > longestJQ {
		return nil, unsupportedJQ("", "it is longer than %d characters", longestJQ)
	}
	q, err := gojq.Parse(text)
	var at *gojq.ParseError
	switch {
	case err == nil && q.Term == nil && q.Left == nil && len(q.FuncDefs) == 0:
		return nil, unsupportedJQ("", "the expression is empty")
	case err == nil:
		return q, nil
	case errors.As(err, &at) && at.Token != "":
		return nil, unsupportedJQ(at.Token, "it is no jq expression: unexpected %q", at.Token)
	}
	return nil, unsupportedJQ("", "it is no jq expression: something is missing or not closed")
}

// translate translates an expression that gives one value.
func (t *jq) translate(text string) (*translatedExpr, error) {
	if name, ok := strings.CutPrefix(strings.TrimSpace(text), "fn:"); ok {
		operation := t.named[strings.TrimSpace(name)]
		if operation == "" || strings.HasPrefix(operation, "fn:") {
			return nil, unsupportedJQ(name, "there is no function %q that is an expression", name)
		}
		text = operation
	}
	q, err := parseJQ(text)
	if err != nil {
		return nil, err
	}
	c, err := t.query(q, t.root)
	if err != nil {
		return nil, err
	}
	switch {
	case c.stream:
		return nil, unsupportedJQ("", "it gives any number of values, not one")
	case c.member != nil:
		return nil, unsupportedJQ("", "it takes all of the data at once; name the parts that are needed")
	}
	return c, nil
}

// longestJQ is the longest expression that is read, in bytes: its parts are
// translated by functions that call each other as deeply as they are nested.
const longestJQ = 8000

// longestFormula is the longest expression that a document may hold, in bytes.
const longestFormula = 4000

// each translates a function of the elements of a list.
func (t *jq) each(q *gojq.Query, list *translatedExpr) (*translatedExpr, error) {
	t.depth++
	defer func() { t.depth-- }()
	elem := list.of.elem
	return t.query(q, &translatedExpr{text: "#", prec: precAtom, of: elem, null: elem.optional, depth: t.depth})
}

// query translates a query whose input is dot. Some translations name a part
// twice, so they could grow with every part around them.
func (t *jq) query(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	c, err := t.anyQuery(q, dot)
	if err == nil && len(c.text) > longestFormula {
		return nil, unsupportedJQ("", "its translation would be longer than the %d characters that an expression has at most", longestFormula)
	}
	return c, err
}

func (t *jq) anyQuery(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	switch {
	case len(q.FuncDefs) > 0:
		return nil, unsupportedJQ(q.FuncDefs[0].Name, "functions cannot be defined in an expression")
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
		return nil, unsupportedJQ(",", "it gives several values, not one")
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
func (t *jq) single(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	c, err := t.query(q, dot)
	if err == nil && c.stream {
		return nil, unsupportedJQ(q, "%s gives any number of values where one is needed", q)
	}
	return c, err
}

// plainValue is single for a part that is not all of the data.
func (t *jq) plainValue(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	c, err := t.single(q, dot)
	if err == nil && c.member != nil {
		return nil, unsupportedJQ(q, "%s is all of the data at once; name the parts that are needed", q)
	}
	return c, err
}

// bind translates A as $name | B.
func (t *jq) bind(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return nil, unsupportedJQ("as", "only as $name can be translated")
	}
	v, err := t.single(q.Left, dot)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(q.Patterns[0].Name, "$")
	before, had := t.vars[name]
	t.vars[name] = v
	defer func() {
		if delete(t.vars, name); had {
			t.vars[name] = before
		}
	}()
	return t.query(q.Right, dot)
}

// pipe translates A | B: once, or for each of the values of A.
func (t *jq) pipe(q *gojq.Query, dot *translatedExpr) (*translatedExpr, error) {
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
func (t *jq) forEach(stream *translatedExpr, q *gojq.Query) (*translatedExpr, error) {
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
		return &translatedExpr{text: fmt.Sprintf("filter(%s, %s)", stream.text, keep), prec: precAtom, of: stream.of, stream: true}, nil
	}
	one, err := t.each(q, stream)
	switch {
	case err != nil:
		return nil, err
	case one.stream:
		return nil, unsupportedJQ(q, "%s goes through lists inside of lists", q)
	case one.text == "#":
		return stream, nil
	}
	return &translatedExpr{text: fmt.Sprintf("map(%s, %s)", stream.text, one.inCall()), prec: precAtom, of: &inferredType{sort: isList, elem: nullable(one)}, stream: true}, nil
}

// inCall is the text as an argument; a record needs parentheses there.
func (c *translatedExpr) inCall() string {
	if strings.HasPrefix(c.text, "{") {
		return "(" + c.text + ")"
	}
	return c.text
}

// nullable is the shape of a value that may be null.
func nullable(c *translatedExpr) *inferredType {
	if !c.null || c.of.optional {
		return c.of
	}
	s := *c.of
	s.optional = true
	return &s
}

// condition is the truth of a function of elements.
func (t *jq) condition(q *gojq.Query, list *translatedExpr) (string, error) {
	one, err := t.each(q, list)
	if err != nil {
		return "", err
	}
	if one.stream || one.member != nil {
		return "", unsupportedJQ(q, "%s is no condition", q)
	}
	return t.truth(one).text, nil
}

// truth is whether a value counts as true: all but null and false do.
func (t *jq) truth(c *translatedExpr) *translatedExpr {
	switch {
	case c.of.sort == unknown && !c.of.declared:
		if !t.assumeType(c, isBool) {
			return made(isBool, precAtom, "%s", c.text)
		}
		return t.truth(c)
	case c.of.sort == isBool && c.null:
		yes := made(isBool, precAtom, "(%s ?? false)", c.wrap(precAtom))
		yes.bare = c.wrap(precAtom) + " ?? false"
		return yes
	case c.of.sort == isBool:
		return c
	case c.null:
		return made(isBool, precCompare, "%s != nil", c.wrap(precAdd))
	}
	return constant("true", isBool)
}

// called is the function that a query is a bare call of.
func called(q *gojq.Query) *gojq.Func {
	if q.Term != nil && q.Term.Type == gojq.TermTypeFunc && len(q.Term.SuffixList) == 0 {
		return q.Term.Func
	}
	return nil
}

// quoted is a text as an expression writes it. ${ would be taken for an
// environment variable.
func quoted(s string) string {
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

// quotedCode is a text as a code.
func quotedCode(s string) *translatedExpr {
	c := constant(quoted(s), isText)
	if strings.Contains(s, "${") {
		c.prec = precAdd
	}
	return c
}

// calledNames are the functions that translations call: a variable of the name
// would hide one.
func calledNames() []string {
	return []string{"abs", "all", "any", "ceil", "concat", "filter", "find", "findIndex", "float", "floor", "get", "int", "join", "keys", "len", "lower", "map", "max",
		"min", "replace", "reverse", "round", "sort", "sortBy", "split", "string", "sum", "take", "toJSON", "trim", "trimPrefix", "trimSuffix", "uniq", "upper"}
}
