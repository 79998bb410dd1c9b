package code

import (
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec/source"
)

// ExprKind is the kind of an expression.
type ExprKind uint8

// The kinds of expressions.
const (
	Other  ExprKind = iota // not understood
	Text                   // a string
	Number                 // a number
	Bool                   // true or false
	Null                   // null or None
	List                   // a list, a tuple or an array
	Map                    // a mapping
	Chain                  // names and calls, joined by dots
	Sum                    // expressions with + between them
)

// Expr is an expression.
type Expr struct {
	Kind   ExprKind
	Text   string  // of a string, number or boolean
	Filled bool    // a string with values in it
	Items  []*Expr // of a list or a sum; the values of a mapping
	Keys   []*Expr // of a mapping
	Links  []Link  // of a chain
	Span   source.Span
	source *Source
	from   int // the first token
}

// Link is a name in a chain, with the arguments of its call.
type Link struct {
	Name   string
	Called bool
	Args   []Arg
	Index  *Expr // of NAME[INDEX]; nil for none
	Span   source.Span
	source *Source
	at     int // the token
}

// Arg is an argument of a call.
type Arg struct {
	Name  string // empty for one without a name
	Value *Expr
	at    int // the first token
}

// Arg returns the argument with a name, or the one at an index if that is not negative; nil for
// none. The argument counts as read. It accepts nil.
func (l *Link) Arg(name string, index int) *Expr {
	if l == nil {
		return nil
	}
	for i, a := range l.Args {
		if a.Name != "" && a.Name == name || a.Name == "" && i == index {
			l.source.use(a.at)
			return a.Value
		}
	}
	return nil
}

// Link returns the first call with one of the names, which counts as read; nil for none. It accepts
// nil.
func (e *Expr) Link(names ...string) *Link {
	if e == nil {
		return nil
	}
	for i := range e.Links {
		if slices.Contains(names, e.Links[i].Name) {
			e.Links[i].Use()
			return &e.Links[i]
		}
	}
	return nil
}

// Name returns the name that a chain without calls consists of, or else "". It accepts nil.
func (e *Expr) Name() string {
	if e == nil || e.Kind != Chain || slices.ContainsFunc(e.Links, func(l Link) bool { return l.Called }) {
		return ""
	}
	var names []string
	for _, l := range e.Links {
		names = append(names, l.Name)
	}
	return strings.Join(names, ".")
}

// IsFalse reports whether an expression is the constant false. It accepts nil.
func (e *Expr) IsFalse() bool { return e != nil && e.Kind == Bool && e.Text == "false" }

// Last returns the last name of a chain, also if it is called: a method of a configuration is
// the value that it returns. It accepts nil.
func (e *Expr) Last() string {
	if e == nil || e.Kind != Chain || len(e.Links) == 0 {
		return ""
	}
	return e.Links[len(e.Links)-1].Name
}

// Int returns the value of a number, and whether it is an integer above 0.
func (e *Expr) Int() (int, bool) {
	if e == nil || e.Kind != Number {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimRight(strings.ReplaceAll(e.Text, "_", ""), "lL"))
	return n, err == nil && n > 0
}

// Decimal returns the text of a number for YAML; empty if it is none.
func (e *Expr) Decimal() string {
	if e == nil || e.Kind != Number {
		return ""
	}
	f, err := strconv.ParseFloat(strings.TrimRight(strings.ReplaceAll(e.Text, "_", ""), "lLdDfF"), 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// parser reads expressions.
type parser struct {
	*Source
	at    int
	depth int // of brackets; outside of them a line of Python ends an expression
}

// Expr reads the expression at a token and returns the number of the token after it.
func (s *Source) Expr(from int) (*Expr, int) {
	p := &parser{Source: s, at: from}
	e := p.expression()
	return e, p.at
}

// Call reads the name and arguments at a token; any text may follow them.
func (s *Source) Call(from int) Link {
	p := &parser{Source: s, at: from}
	l := Link{Name: p.peek().Text, Span: p.Span(p.peek()), source: s, at: p.at}
	p.at++
	if p.peek().Is("(") {
		l.Called, l.Args = true, p.arguments()
	}
	return l
}

// maxDepth limits the nesting of expressions.
const maxDepth = 200

func (p *parser) peek() Token { return p.Tokens[min(p.at, len(p.Tokens)-1)] }

func (p *parser) ahead(n int) Token { return p.Tokens[min(p.at+n, len(p.Tokens)-1)] }

// isEnd reports whether the expression ends before the token.
func (p *parser) isEnd() bool {
	t := p.peek()
	return t.kind == end || t.kind == mark && strings.ContainsAny(t.Text, ",;)]}:=") || p.Language == Python && t.First && p.depth == 0 && p.at > 0
}

// expression reads an expression up to a delimiter.
func (p *parser) expression() *Expr {
	begin := p.peek()
	if p.depth > maxDepth {
		return p.skip(begin)
	}
	e := p.primary()
	if p.Language == Python && p.peek().Is("+") && (e.Kind != Text || p.ahead(1).kind != text) {
		e = p.sum(begin, e)
	}
	for e.Kind == Text && !p.isEnd() {
		switch next := p.peek(); {
		case next.kind == text:
		case next.Is("+") && p.ahead(1).kind == text:
			p.at++
		default:
			return p.skip(begin)
		}
		e.Text += p.peek().Text
		e.Filled = e.Filled || p.peek().filled
		p.at++
	}
	if !p.isEnd() {
		return p.skip(begin)
	}
	return e
}

// sum reads the expressions after the first one of a sum.
func (p *parser) sum(begin Token, first *Expr) *Expr {
	e := &Expr{Kind: Sum, Items: []*Expr{first}, Span: p.Span(begin), source: p.Source, from: first.from}
	for p.peek().Is("+") {
		p.at++
		e.Items = append(e.Items, p.primary())
	}
	return e
}

// skip skips the rest of an expression that is not understood.
func (p *parser) skip(begin Token) *Expr {
	for p.peek().kind != end {
		t := p.peek()
		if t.kind == mark && strings.ContainsAny(t.Text, "([{") {
			p.at = p.Close(p.at) + 1
			continue
		}
		if t.kind == mark && strings.ContainsAny(t.Text, ",;)]}") || p.Language == Python && t.First && p.depth == 0 && t.At != begin.At {
			break
		}
		p.at++
	}
	return &Expr{Kind: Other, Span: p.Span(begin)}
}

// primary reads an expression without operators.
func (p *parser) primary() *Expr {
	t := p.peek()
	e := &Expr{Span: p.Span(t), source: p.Source, from: p.at}
	switch {
	case t.kind == text:
		e.Kind, e.Text, e.Filled = Text, t.Text, t.filled
		p.at++
	case t.kind == number, t.Is("-") && p.ahead(1).kind == number:
		e.Kind = Number
		if t.Is("-") {
			e.Text = "-"
			p.at++
		}
		e.Text += p.peek().Text
		p.at++
	case t.Is("true"), t.Is("True"), t.Is("false"), t.Is("False"):
		e.Kind, e.Text = Bool, strings.ToLower(t.Text)
		p.at++
	case t.Is("null"), t.Is("None"):
		e.Kind = Null
		p.at++
	case t.Is("new"), t.Is("await"):
		for p.peek().Is(t.Text) {
			p.at++
		}
		if p.isEnd() {
			return e
		}
		return p.primary()
	case t.kind == word:
		p.chain(e)
	case t.Is("["), t.Is("{"):
		p.collection(e)
	case t.Is("("):
		p.collection(e)
		if p.isArrow() {
			return p.lambda()
		}
		if len(e.Items) == 1 && e.Kind == List {
			return e.Items[0]
		}
	default:
		if !p.isEnd() {
			p.at++
		}
	}
	return e
}

func (p *parser) isArrow() bool {
	return p.Language == Java && p.peek().Is("-") && p.ahead(1).Is(">")
}

// lambda reads what a lambda returns.
func (p *parser) lambda() *Expr {
	p.depth++
	defer func() { p.depth-- }()
	p.at += 2
	if !p.peek().Is("{") {
		return p.expression()
	}
	closing := p.Close(p.at)
	e := &Expr{Span: p.Span(p.peek())}
	if at := p.Index(p.at, "return"); at >= 0 && at < closing {
		p.at = at + 1
		e = p.expression()
	}
	p.at = closing + 1
	return e
}

// chain reads names and calls.
func (p *parser) chain(e *Expr) {
	e.Kind = Chain
	for {
		t := p.peek()
		l := Link{Name: t.Text, Span: p.Span(t), source: p.Source, at: p.at}
		p.at++
		if p.Language == Java && p.peek().Is("<") {
			p.skipGenerics()
		}
		if p.peek().Is("(") {
			l.Called, l.Args = true, p.arguments()
		}
		for p.peek().Is("[") {
			l.Index, _ = p.Expr(p.at + 1)
			p.at = p.Close(p.at) + 1
			e.Kind = Other
		}
		e.Links = append(e.Links, l)
		switch {
		case p.peek().Is(".") && p.ahead(1).kind == word:
			p.at++
		case p.peek().Is(":") && p.ahead(1).Is(":") && p.ahead(2).kind == word:
			p.at += 2
		default:
			if p.isArrow() {
				*e = *p.lambda()
			}
			return
		}
	}
}

// skipGenerics skips type arguments; a comparison stays where it is.
func (p *parser) skipGenerics() {
	depth := 0
	for i := p.at; i < len(p.Tokens); i++ {
		switch t := p.Tokens[i]; {
		case t.Is("<"):
			depth++
		case t.Is(">"):
			if depth--; depth == 0 {
				p.at = i + 1
				return
			}
		case t.kind == word, t.Is(","), t.Is("."), t.Is("?"), t.Is("["), t.Is("]"):
		default:
			return
		}
	}
}

// arguments reads the arguments of a call.
func (p *parser) arguments() []Arg {
	var all []Arg
	p.each(func() {
		a := Arg{at: p.at}
		if p.peek().kind == word && p.ahead(1).Is("=") && !p.ahead(2).Is("=") {
			a.Name = p.peek().Text
			p.at += 2
		}
		a.Value = p.expression()
		all = append(all, a)
	})
	return all
}

// each reads the parts of brackets, which commas separate.
func (p *parser) each(read func()) {
	closing := p.Close(p.at)
	p.at++
	p.depth++
	for p.at < closing {
		before := p.at
		if !p.peek().Is(",") {
			read()
		}
		if p.peek().Is(",") || p.at == before {
			p.at++
		}
	}
	p.depth--
	p.at = closing + 1
}

// collection reads a list, tuple, set, array or mapping.
func (p *parser) collection(e *Expr) {
	e.Kind = List
	p.each(func() {
		item := p.expression()
		if p.peek().Is(":") {
			p.at++
			e.Kind, e.Keys = Map, append(e.Keys, item)
			item = p.expression()
		}
		e.Items = append(e.Items, item)
	})
	if e.Kind == Map && len(e.Keys) != len(e.Items) {
		e.Kind = Other
	}
}

// AssignedTo returns the name to which the expression at a token is assigned, or of the method
// that returns it; empty for none.
func (s *Source) AssignedTo(at int) string {
	for at > 0 && (s.Tokens[at-1].Is("new") || s.Tokens[at-1].Is("await") || s.Tokens[at-1].Is("(")) {
		at--
	}
	switch {
	case at >= 2 && s.Tokens[at-1].Is("=") && s.Tokens[at-2].kind == word:
		return s.Tokens[at-2].Text
	case at >= 1 && s.Tokens[at-1].Is("return"):
		return s.function(at)
	}
	return ""
}

// maxBody limits the tokens of a function that are searched for its name.
const maxBody = 5000

// function returns the name of the function around a token; empty for none.
func (s *Source) function(at int) string {
	if s.Language == Python {
		for i := at; i >= max(0, at-maxBody); i-- {
			if s.Tokens[i].Is("def") && i+1 < len(s.Tokens) {
				return s.Tokens[i+1].Text
			}
		}
		return ""
	}
	depth := 0
	for i := at - 1; i > max(0, at-maxBody); i-- {
		switch t := s.Tokens[i]; {
		case t.Is("}"):
			depth++
		case t.Is("{") && depth > 0:
			depth--
		case t.Is("{"):
			return s.method(i)
		}
	}
	return ""
}

// method returns the name of the method whose body begins at a token; empty for none.
func (s *Source) method(body int) string {
	depth := 0
	for i := body - 1; i > max(0, body-maxBody); i-- {
		switch t := s.Tokens[i]; {
		case t.Is(")"):
			depth++
		case t.Is("(") && depth > 1:
			depth--
		case t.Is("(") && s.Tokens[i-1].kind == word:
			return s.Tokens[i-1].Text
		case depth == 0 && (t.Is(";") || t.Is("{") || t.Is("}")):
			return ""
		}
	}
	return ""
}
