// Package sqlquery parses SQL queries with :name parameters, and database URLs in
// SQLAlchemy's form. It needs no driver, so that the validator can use it.
package sqlquery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Query is a parsed SQL statement. It is immutable.
type Query struct {
	dialect  Dialect
	segments []segment
}

// segment is a part of SQL, or a parameter if name is set.
type segment struct {
	text string // for the database
	name string // of the parameter
	at   int    // byte offset in the original text
}

// Error is a syntax error of a query.
type Error struct {
	Line   int    // 1-based
	Column int    // in characters, 1-based
	Reason string // message for the user
}

// Error returns the position and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("query line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Parse finds the parameters of a statement: each :name outside of quotes and
// comments that is not a cast (::), an assignment (:=) or a slice. A backslash escapes
// the colon. The error is an *Error.
func Parse(text string, d Dialect) (*Query, error) {
	f := d.family()
	s := &scanner{text: text, family: f, syntax: f.syntax, writes: -1}
	if err := s.scan(); err != nil {
		return nil, err
	}
	if err := s.checkReads(); err != nil {
		return nil, err
	}
	return &Query{dialect: d, segments: s.segments}, nil
}

// Parameter is a parameter of a query.
type Parameter struct {
	Name string // without the colon
	At   int    // byte offset of the colon of its first use
}

// Parameters returns the parameters without repetition, in the order of first use.
func (q *Query) Parameters() []Parameter {
	var all []Parameter
	for _, p := range q.segments {
		if p.name != "" && !slices.ContainsFunc(all, func(used Parameter) bool { return used.Name == p.name }) {
			all = append(all, Parameter{p.name, p.at})
		}
	}
	return all
}

// Names returns the names of Parameters.
func (q *Query) Names() []string {
	var names []string
	for _, p := range q.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

// Bound returns the text for the driver and the parameter of each placeholder: $1,
// $2 for PostgreSQL, @p1, @p2 for SQL Server and getvariable('qtype1') for DuckDB, with one placeholder
// for a parameter that is used repeatedly, and a ? for each use for the others.
func (q *Query) Bound() (text string, order []string) {
	var b strings.Builder
	syntax := q.dialect.family().syntax
	mark := syntax.placeholder
	for _, p := range q.segments {
		switch {
		case p.name == "":
			b.WriteString(p.text)
		case mark != "?":
			n := slices.Index(order, p.name) + 1
			if n == 0 {
				order = append(order, p.name)
				n = len(order)
			}
			b.WriteString(mark)
			b.WriteString(strconv.Itoa(n))
			b.WriteString(syntax.suffix)
		default:
			order = append(order, p.name)
			b.WriteByte('?')
		}
	}
	return b.String(), order
}

// Origin returns the line and column, both 1-based, in the original query for a
// character of Bound's text, which is counted from 1, as PostgreSQL does. ok is false
// outside of the text.
func (q *Query) Origin(original string, character int) (line, column int, ok bool) {
	left := character - 1
	for i, p := range q.segments {
		length := len([]rune(p.text))
		if p.name != "" {
			_, order := (&Query{q.dialect, q.segments[:i+1]}).Bound()
			y := q.dialect.family().syntax
			length = len(y.placeholder) + len(strconv.Itoa(slices.Index(order, p.name)+1)) + len(y.suffix)
		}
		if left < length && left >= 0 {
			at := p.at
			if p.name == "" {
				at += len(string([]rune(p.text)[:left]))
			}
			line, column = position(original, min(at, len(original)))
			return line, column, true
		}
		left -= length
	}
	return 0, 0, false
}

// position returns the line and column, in characters, of a byte offset.
func position(text string, at int) (line, column int) {
	before := text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, len([]rune(before[start:])) + 1
}
