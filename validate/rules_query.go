package validate

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// queryRules returns the rules of SQL queries.
func queryRules() []rule { return []rule{invalidQuery(), unknownParameter(), invalidConnection()} }

// dialectOf returns the SQL dialect of a step's database. It returns false if the URL
// is a secret or known only at run time.
func dialectOf(s *spec.SQLSource) (sqlquery.Dialect, bool) {
	u, err := sqlquery.ParseURL(s.Connection.Reveal())
	if err != nil {
		return "", false
	}
	return u.Dialect, true
}

func invalidQuery() rule {
	return rule{code: "QT460", check: on(func(p *ruleContext, s *spec.SQLSource) {
		d, known := dialectOf(s)
		if !known {
			return
		}
		if _, err := sqlquery.Parse(s.Query, d); err != nil {
			p.report(placeOfQueryError(s, err), "step %q (SQLSource): %s", s.ID, err)
		}
	})}
}

// placeOfQueryError returns the position of an error of a query.
func placeOfQueryError(s *spec.SQLSource, err error) source.Span {
	whole := placeOf(s, "query", "id")
	at, ok := errors.AsType[*sqlquery.Error](err)
	if !ok {
		return whole
	}
	lines := strings.SplitAfter(s.Query, "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return whole
	}
	line := lines[at.Line-1]
	before := byteAt(line, at.Column)
	_, n := utf8.DecodeRuneInString(line[before:])
	return within(whole, excerptAt(s.Query, len(strings.Join(lines[:at.Line-1], ""))+before, n))
}

func unknownParameter() rule {
	return rule{code: "QT461", check: on(func(p *ruleContext, s *spec.SQLSource) {
		inputs := map[string]bool{}
		var names []string
		for _, in := range s.Common().AllInputs() {
			inputs[in.ID] = true
			names = append(names, in.ID)
		}
		for _, used := range queryParameters(s) {
			if name := used.Name; !inputs[name] {
				place := within(placeOf(s, "query", "id"), excerptAt(s.Query, used.At+1, len(name)))
				p.list.Add(p.reportAt(place, "step %q (SQLSource): the query uses :%s, which is not an input of the step", s.ID, name).
					WithNearest(name, names))
			}
		}
	})}
}

// queryParameters returns the parameters of a query. If the dialect is unknown, it
// returns the names that are parameters in every dialect.
func queryParameters(s *spec.SQLSource) []sqlquery.Parameter {
	dialects := sqlquery.Dialects()
	if d, known := dialectOf(s); known {
		dialects = []sqlquery.Dialect{d}
	}
	var common []sqlquery.Parameter
	parsed := false
	for _, d := range dialects {
		q, err := sqlquery.Parse(s.Query, d)
		switch {
		case err != nil: // it cannot be of this dialect
		case !parsed:
			common, parsed = q.Parameters(), true
		default:
			seen := q.Names()
			common = slices.DeleteFunc(common, func(used sqlquery.Parameter) bool { return !slices.Contains(seen, used.Name) })
		}
	}
	return common
}

func invalidConnection() rule {
	return rule{code: "QT462", check: on(func(p *ruleContext, s *spec.SQLSource) {
		text := s.Connection.Reveal()
		if text == "" && !s.Connection.IsFixed() || s.Connection.Ref != nil || !isDecided(text) || !s.Position().Complete("connection") {
			return
		}
		u, err := sqlquery.ParseURL(text)
		if err != nil {
			p.report(placeOf(s, "connection", "id"), "the connection of step %q (SQLSource): %s", s.ID, err)
			return
		}
		if s.Auth.To == nil {
			return
		}
		if err := u.Dialect.CheckAuth(spec.TypeName(s.Auth.To)); err != nil {
			p.report(placeOf(s, "auth", "id"), "step %q (SQLSource): %s", s.ID, err)
		}
	})}
}
