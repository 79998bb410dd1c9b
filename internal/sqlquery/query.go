// Package query reads what documents say about databases: SQL texts with :name
// parameters, and the URLs of databases as SQLAlchemy writes them. It opens
// nothing; the checker and the running application read the same.
package sqlquery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dialect is a family of databases whose SQL is read alike.
type Dialect string

// The dialects.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgresql"
	MySQL      Dialect = "mysql" // MariaDB, too
)

// Dialects lists the dialects in the order that messages show them.
func Dialects() []Dialect { return []Dialect{SQLite, PostgreSQL, MySQL} }

// Query is one SQL statement whose parameters were found. It is not changed
// once made.
type Query struct {
	dialect Dialect
	pieces  []segment
}

// segment is a stretch of SQL, or a parameter where name is set.
type segment struct {
	text string // as it goes to the database
	name string // the parameter
	at   int    // where the piece begins in the document's text, in bytes
}

// Error says what in a query cannot be sent.
type Error struct {
	Line   int    // of the query's text, from 1
	Column int    // in characters, from 1
	Reason string // what is wrong there, in a user's words
}

// Error names the place in the query.
func (e *Error) Error() string {
	return fmt.Sprintf("query line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Parse finds the parameters of a statement: each :name that stands outside of
// quotes and comments and is no cast (::), no assignment (:=) and no slice. A
// backslash before the colon takes its meaning away. The error is an *Error.
func Parse(text string, d Dialect) (*Query, error) {
	s := &scanner{text: text, dialect: d}
	if err := s.scan(); err != nil {
		return nil, err
	}
	return &Query{dialect: d, pieces: s.pieces}, nil
}

// Names lists the parameters, each once, in the order of their first appearance.
func (q *Query) Names() []string {
	var names []string
	for _, p := range q.pieces {
		if p.name != "" && !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// Bound is the text as the database's driver takes it, and the parameter that
// belongs to each of its placeholders: $1, $2 for PostgreSQL, where a parameter
// that stands twice has one placeholder, and a ? each time for the others.
func (q *Query) Bound() (text string, order []string) {
	var b strings.Builder
	for _, p := range q.pieces {
		switch {
		case p.name == "":
			b.WriteString(p.text)
		case q.dialect == PostgreSQL:
			n := slices.Index(order, p.name) + 1
			if n == 0 {
				order = append(order, p.name)
				n = len(order)
			}
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
		default:
			order = append(order, p.name)
			b.WriteByte('?')
		}
	}
	return b.String(), order
}

// Origin is where a character of Bound's text stands in the query as it was
// written: line and column, both from 1. The character is counted from 1, as
// PostgreSQL counts; ok is false for one that is outside of the text.
func (q *Query) Origin(written string, character int) (line, column int, ok bool) {
	left := character - 1
	for i, p := range q.pieces {
		length := len([]rune(p.text))
		if p.name != "" {
			_, order := (&Query{q.dialect, q.pieces[:i+1]}).Bound()
			length = len("$") + len(strconv.Itoa(slices.Index(order, p.name)+1))
		}
		if left < length && left >= 0 {
			at := p.at
			if p.name == "" {
				at += len(string([]rune(p.text)[:left]))
			}
			line, column = place(written, min(at, len(written)))
			return line, column, true
		}
		left -= length
	}
	return 0, 0, false
}

// place is the line and the column, in characters, of a byte of a text.
func place(text string, at int) (line, column int) {
	before := text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, len([]rune(before[start:])) + 1
}
