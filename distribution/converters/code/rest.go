package code

import (
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// claim is an expression that is converted: each of its calls and arguments is read or reported.
type claim struct {
	links []Link
	what  string // in messages, such as "the model"
}

func (s *Source) use(token int) {
	if s != nil {
		s.read[token] = true
	}
}

// Use marks a call as read, without its arguments. It accepts nil.
func (l *Link) Use() {
	if l != nil {
		l.source.use(l.at)
	}
}

// UseAll marks a call as read with its arguments. It accepts nil.
func (l *Link) UseAll() {
	l.Use()
	for i := 0; l != nil && i < len(l.Args); i++ {
		l.source.use(l.Args[i].at)
	}
}

// Use marks the calls of a chain that have one of the names as read. It accepts nil.
func (e *Expr) Use(names ...string) {
	for _, name := range names {
		e.Link(name)
	}
}

// UseRange marks a part of a program as read, such as a declaration. What is claimed in it is
// reported nevertheless.
func (s *Source) UseRange(from, to int) {
	for i := from; i < min(to, len(s.parts)); i++ {
		s.parts[i] = true
	}
}

// IsRead reports whether a part of the program has something that was read.
func (s *Source) IsRead(from, to int) bool {
	for i := from; i < min(to, len(s.read)); i++ {
		if s.read[i] || s.parts[i] {
			return true
		}
	}
	return false
}

// Claim declares that a chain is converted: Rest reports the calls and the arguments in it that
// nothing reads. what names it in messages. The first name of the chain counts as read.
func (s *Source) Claim(e *Expr, what string) {
	if e != nil && len(e.Links) > 0 {
		e.Links[0].Use()
		s.claims = append(s.claims, claim{e.Links, what})
	}
}

// ClaimAnnotation declares that an annotation is converted. One without a known name is reported.
func (s *Source) ClaimAnnotation(l Link, what string, known []string) {
	if slices.Contains(known, l.Name) {
		l.Use()
	}
	s.claims = append(s.claims, claim{[]Link{l}, what})
}

// Rest reports what nothing has read of the claimed expressions.
func (s *Source) Rest(r *input.Report) {
	for _, c := range s.claims {
		for _, l := range c.links {
			if s.read[l.at] {
				s.restOf(r, l, c.what)
			} else if !r.IsReported(l.Span) {
				r.Add(input.Unsupported.At(l.Span, "%s of %s is not converted", l.Name, c.what))
			}
		}
	}
}

// restOf reports the arguments of a call that nothing has read.
func (s *Source) restOf(r *input.Report, l Link, what string) {
	for _, a := range l.Args {
		name := a.Name
		if name == "" {
			name = "an argument"
		} else {
			name = "the argument " + name
		}
		if !s.read[a.at] && !r.IsReported(a.Value.Span) {
			r.Add(input.Unsupported.At(a.Value.Span, "%s of %s of %s is not converted", name, l.Name, what))
		}
	}
}

// Part is a statement of a program: its tokens from one to before the other.
type Part struct{ From, To int }

// Statements returns the statements of a block of Python between two tokens. Decorators belong to
// what they decorate.
func (s *Source) Statements(from, to int) []Part {
	var all []Part
	if from >= to {
		return nil
	}
	column := s.Token(from).Column
	decorator := false // only decorators were read of the statement
	for i := from; i < to; i++ {
		t := s.Token(i)
		if i == from || t.First && t.Column <= column {
			if !decorator {
				all = append(all, Part{i, i})
			}
			decorator = t.Is("@")
		}
		if t.kind == mark && isOpening(t.Text) {
			i = min(s.Close(i), to-1)
		}
		all[len(all)-1].To = i + 1
	}
	return all
}

// Body returns the first token of the block of a statement, or the end of the statement if it has none.
func (s *Source) Body(p Part) int {
	for i := p.From; i < p.To; i++ {
		t := s.Token(i)
		if i > p.From && t.First && t.Column > s.Token(p.From).Column {
			return i
		}
		if t.kind == mark && isOpening(t.Text) {
			i = s.Close(i)
		}
	}
	return p.To
}

// SpanOf returns the place of the first token of a statement.
func (s *Source) SpanOf(p Part) source.Span { return s.Span(s.Token(p.From)) }

// isOpening reports whether a mark opens a bracket.
func isOpening(mark string) bool { return mark == "(" || mark == "[" || mark == "{" }
