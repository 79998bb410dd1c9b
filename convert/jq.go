package convert

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/qtype-dev/qtype/diag"
	"github.com/qtype-dev/qtype/source"
)

// code is a translated expression: the text, and what is known of its value.
type code struct {
	text   string
	bare   string // the text without the parentheses around all of it; mostly empty
	prec   int    // how tightly the outermost operator binds
	of     *shape // what the value is
	null   bool   // it may be null
	stream bool   // it is a list that stands for many values, one after the other
	empty  bool   // it is the constant []
	depth  int    // how many functions of elements it stands in, where it names an element
	loose  bool   // a schema says what it is, but need not be right: a model answers
	nulls  *bool  // set where somebody expects null here; nil where nobody asks
	member func(name string) (*code, error)
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
func (c *code) wrap(prec int) string {
	if c.prec >= prec {
		return c.text
	}
	return "(" + c.text + ")"
}

// whole is the text where nothing stands beside it.
func (c *code) whole() string {
	if c.bare != "" {
		return c.bare
	}
	return c.text
}

// or is the text with a value in place of null.
func (c *code) or(fallback string) string {
	if !c.null {
		return c.wrap(precAtom)
	}
	return "(" + c.wrap(precAtom) + " ?? " + fallback + ")"
}

// orBare is or for an argument, which needs no parentheses.
func (c *code) orBare(fallback string) string {
	if !c.null {
		return c.text
	}
	return c.wrap(precAtom) + " ?? " + fallback
}

// constant and made make codes of texts.
func constant(text string, s sort) *code {
	return &code{text: text, prec: precAtom, of: &shape{sort: s, declared: true}}
}

func made(s sort, prec int, format string, args ...any) *code {
	return &code{text: fmt.Sprintf(format, args...), prec: prec, of: &shape{sort: s, declared: true}}
}

// is says what a value must be for an expression to make sense. It tells whether
// it can be.
func (c *code) is(s sort) bool {
	if c.of.sort == unknown && !c.of.declared {
		c.of.sort = s
		if s == isList {
			c.of.elem = &shape{}
		}
	}
	return c.of.sort == s || s == isNumber && c.of.sort == isInt
}

// number tells whether the value can be a number.
func (c *code) number() bool { return c.is(isNumber) }

// jqError tells why an expression cannot be translated, and at which word.
type jqError struct{ word, why string }

// Error is the reason.
func (e *jqError) Error() string { return e.why }

func untranslatable(word any, format string, args ...any) error {
	return &jqError{fmt.Sprint(word), fmt.Sprintf(format, args...)}
}

// jq translates expressions.
type jq struct {
	root   *code            // the data that expressions see as .
	vars   map[string]*code // what is bound to names, without $
	depth  int              // how many functions of elements we are in
	guess  bool             // a first look: shapes are still being found
	strict bool             // a look at which nothing is taken for what it is only mostly
}

// mostly says what a value is of which nothing else says it: a condition's is a
// truth value, for example. In the first looks nothing is, for another expression
// may know better. It tells whether something is known of the value now.
func (t *jq) mostly(c *code, s sort) bool {
	if c.of.sort == unknown && !c.of.declared && !t.strict {
		c.is(s)
	}
	return c.of.sort != unknown
}

// parseJQ reads an expression; its error is a *jqError.
func parseJQ(text string) (*gojq.Query, error) {
	if len(text) > longestJQ {
		return nil, untranslatable("", "it is longer than %d characters", longestJQ)
	}
	q, err := gojq.Parse(text)
	var at *gojq.ParseError
	switch {
	case err == nil:
		return q, nil
	case errors.As(err, &at) && at.Token != "":
		return nil, untranslatable(at.Token, "it is no jq expression: unexpected %q", at.Token)
	}
	return nil, untranslatable("", "it is no jq expression: something is missing or not closed")
}

// translate translates an expression that gives one value.
func (t *jq) translate(text string) (*code, error) {
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
		return nil, untranslatable("", "it gives any number of values, not one")
	case c.member != nil:
		return nil, untranslatable("", "it takes all of the data at once; name the parts that are needed")
	}
	return c, nil
}

// longestJQ is the longest expression that is read, in bytes: its parts are
// translated by functions that call each other as deeply as they are nested.
const longestJQ = 8000

// longestFormula is the longest expression that a document may hold, in bytes.
const longestFormula = 4000

// each translates a function of the elements of a list.
func (t *jq) each(q *gojq.Query, list *code) (*code, error) {
	t.depth++
	defer func() { t.depth-- }()
	elem := list.of.elem
	return t.query(q, &code{text: "#", prec: precAtom, of: elem, null: elem.optional, depth: t.depth})
}

// query translates a query whose input is dot. Some translations name a part
// twice, so they could grow with every part around them.
func (t *jq) query(q *gojq.Query, dot *code) (*code, error) {
	c, err := t.anyQuery(q, dot)
	if err == nil && len(c.text) > longestFormula {
		return nil, untranslatable("", "its translation would be longer than the %d characters that an expression has at most", longestFormula)
	}
	return c, err
}

func (t *jq) anyQuery(q *gojq.Query, dot *code) (*code, error) {
	switch {
	case len(q.FuncDefs) > 0:
		return nil, untranslatable(q.FuncDefs[0].Name, "functions cannot be defined in an expression")
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
		return nil, untranslatable(",", "it gives several values, not one")
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
func (t *jq) single(q *gojq.Query, dot *code) (*code, error) {
	c, err := t.query(q, dot)
	if err == nil && c.stream {
		return nil, untranslatable(q, "%s gives any number of values where one is needed", q)
	}
	return c, err
}

// plainValue is single for a part that is not all of the data.
func (t *jq) plainValue(q *gojq.Query, dot *code) (*code, error) {
	c, err := t.single(q, dot)
	if err == nil && c.member != nil {
		return nil, untranslatable(q, "%s is all of the data at once; name the parts that are needed", q)
	}
	return c, err
}

// bind translates A as $name | B.
func (t *jq) bind(q *gojq.Query, dot *code) (*code, error) {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return nil, untranslatable("as", "only as $name can be translated")
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
func (t *jq) pipe(q *gojq.Query, dot *code) (*code, error) {
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
func (t *jq) forEach(stream *code, q *gojq.Query) (*code, error) {
	if q.Term == nil && q.Op == gojq.OpPipe && len(q.Patterns) == 0 {
		first, err := t.forEach(stream, q.Left)
		if err != nil {
			return nil, err
		}
		return t.forEach(first, q.Right)
	}
	if f := called(q); f != nil && f.Name == "select" && len(f.Args) == 1 {
		keep, err := t.condition(f.Args[0], stream)
		if err != nil {
			return nil, err
		}
		return &code{text: fmt.Sprintf("filter(%s, %s)", stream.text, keep), prec: precAtom, of: stream.of, stream: true}, nil
	}
	one, err := t.each(q, stream)
	switch {
	case err != nil:
		return nil, err
	case one.stream:
		return nil, untranslatable(q, "%s goes through lists inside of lists", q)
	case one.text == "#":
		return stream, nil
	}
	return &code{text: fmt.Sprintf("map(%s, %s)", stream.text, one.inCall()), prec: precAtom, of: &shape{sort: isList, elem: nullable(one)}, stream: true}, nil
}

// inCall is the text as an argument; a record needs parentheses there.
func (c *code) inCall() string {
	if strings.HasPrefix(c.text, "{") {
		return "(" + c.text + ")"
	}
	return c.text
}

// nullable is the shape of a value that may be null.
func nullable(c *code) *shape {
	if !c.null || c.of.optional {
		return c.of
	}
	s := *c.of
	s.optional = true
	return &s
}

// condition is the truth of a function of elements.
func (t *jq) condition(q *gojq.Query, list *code) (string, error) {
	one, err := t.each(q, list)
	if err != nil {
		return "", err
	}
	if one.stream || one.member != nil {
		return "", untranslatable(q, "%s is no condition", q)
	}
	return t.truth(one).text, nil
}

// truth is whether a value counts as true: all but null and false do.
func (t *jq) truth(c *code) *code {
	switch {
	case c.of.sort == unknown && !c.of.declared:
		if !t.mostly(c, isBool) {
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
func quotedCode(s string) *code {
	c := constant(quoted(s), isText)
	if strings.Contains(s, "${") {
		c.prec = precAdd
	}
	return c
}

// template is one text of a file: jq between ${ and }, the rest as it stands.
type template struct {
	parts []templatePart
}

// templatePart is a piece of a template.
type templatePart struct {
	text string // the piece, without ${ and }
	jq   bool   // it is an expression
}

// readTemplate takes a text apart. Where ${ has no end it is text.
func readTemplate(s string) template {
	var t template
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		end := expressionEnd(s[i+2:])
		if end < 0 {
			break
		}
		if i > 0 {
			t.parts = append(t.parts, templatePart{text: s[:i]})
		}
		t.parts = append(t.parts, templatePart{text: strings.TrimSpace(s[i+2 : i+2+end]), jq: true})
		s = s[i+2+end+1:]
	}
	if s != "" {
		t.parts = append(t.parts, templatePart{text: s})
	}
	return t
}

// expressionEnd is where the } stands that closes an expression: behind all that
// is opened in it, and outside of its texts; -1 where there is none.
func expressionEnd(s string) int {
	var open []byte // what } and ) close: { a brace, ( an interpolation, [ a parenthesis, " a text
	for i := 0; i < len(s); i++ {
		inText := len(open) > 0 && open[len(open)-1] == '"'
		switch c := s[i]; {
		case inText && c == '\\' && i+1 < len(s) && s[i+1] == '(':
			open = append(open, '(')
			i++
		case inText && c == '\\':
			i++
		case inText && c == '"':
			open = open[:len(open)-1]
		case inText:
		case c == '"':
			open = append(open, '"')
		case c == '{' || c == '(':
			open = append(open, c)
		case c == ')' && len(open) > 0 && open[len(open)-1] == '(':
			open = open[:len(open)-1]
		case c == '}' && len(open) == 0:
			return i
		case c == '}' && open[len(open)-1] == '{':
			open = open[:len(open)-1]
		}
	}
	return -1
}

// dynamic tells whether there is an expression in it.
func (t template) dynamic() bool {
	return slices.ContainsFunc(t.parts, func(p templatePart) bool { return p.jq })
}

// text translates a template to an expression that gives a text: expressions
// give their texts, as jq's string interpolation does.
func (t *jq) text(tpl template) (*code, error) {
	if len(tpl.parts) == 0 {
		return constant(`""`, isText), nil
	}
	var sum *code
	for _, p := range tpl.parts {
		next := quotedCode(p.text)
		if p.jq {
			c, err := t.translate(p.text)
			if err != nil {
				return nil, err
			}
			t.mostly(c, isText)
			if next, err = t.asText(c); err != nil {
				return nil, err
			}
		}
		if sum == nil {
			sum = next
			continue
		}
		sum = made(isText, precAdd, "%s + %s", sum.wrap(precAdd), next.wrap(precMultiply))
	}
	if len(sum.text) > longestFormula {
		return nil, untranslatable("", "it is longer than the %d characters that an expression has at most", longestFormula)
	}
	return sum, nil
}

// placeOf is where a word of a scalar stands; the scalar's own place where the
// word cannot be found in the file's text.
func placeOf(n *node, word string) source.Span {
	if word == "" || n.span.File == nil {
		return n.mark()
	}
	for line := n.span.Start.Line; line <= n.span.End.Line; line++ {
		text := []rune(n.span.File.Line(line))
		from, to := 0, len(text)
		if line == n.span.Start.Line {
			from = min(n.span.Start.Column-1, len(text))
		}
		if line == n.span.End.Line {
			to = min(n.span.End.Column-1, len(text))
		}
		if at := strings.Index(string(text[from:max(to, from)]), word); at >= 0 {
			column := from + len([]rune(string(text[from:])[:at])) + 1
			return source.Span{File: n.span.File, Start: source.Pos{Line: line, Column: column},
				End: source.Pos{Line: line, Column: column + len([]rune(word))}}
		}
	}
	return n.mark()
}

// untranslated tells of an expression that cannot be translated.
func (r *report) untranslated(n *node, what string, err error) {
	var e *jqError
	word := ""
	if errors.As(err, &e) {
		word = e.word
	}
	r.add(diag.Diagnostic(ruleJQ.At(placeOf(n, word), "%s: %s", what, err)))
}
