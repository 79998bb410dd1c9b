// Package sqlquery parses SQL queries with :name parameters, and database URLs in
// SQLAlchemy's form. It needs no driver, so that the validator can use it.
package sqlquery

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dialect is a family of databases with the same SQL syntax.
type Dialect string

// Supported dialects.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgresql"
	MySQL      Dialect = "mysql" // and MariaDB
	Athena     Dialect = "athena"
)

// Dialects returns the dialects in the order of messages.
func Dialects() []Dialect { return []Dialect{SQLite, PostgreSQL, MySQL, Athena} }

// Port returns the port of a server that listens where such servers do; 0 for those without one.
func (d Dialect) Port() int {
	switch d {
	case PostgreSQL:
		return 5432
	case MySQL:
		return 3306
	}
	return 0
}

// CheckAuth returns an error if a database of the dialect cannot be used with an auth, which is an
// AWS identity or a user and a password.
func (d Dialect) CheckAuth(isAWS bool) error {
	switch {
	case d == SQLite:
		return errors.New("an SQLite file has no users: remove auth")
	case d == Athena && !isAWS:
		return errors.New("the auth of Athena must be of type aws")
	}
	return nil
}

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
	s := &scanner{text: text, dialect: d}
	if err := s.scan(); err != nil {
		return nil, err
	}
	if err := s.checkReads(); err != nil {
		return nil, err
	}
	return &Query{dialect: d, segments: s.segments}, nil
}

// Names returns the parameters without repetition, in the order of first use.
func (q *Query) Names() []string {
	var names []string
	for _, p := range q.segments {
		if p.name != "" && !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// Bound returns the text for the driver and the parameter of each placeholder: $1,
// $2 for PostgreSQL, with one placeholder for a parameter that is used repeatedly,
// and a ? for each use for the others.
func (q *Query) Bound() (text string, order []string) {
	var b strings.Builder
	for _, p := range q.segments {
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

// Origin returns the line and column, both 1-based, in the original query for a
// character of Bound's text, which is counted from 1, as PostgreSQL does. ok is false
// outside of the text.
func (q *Query) Origin(original string, character int) (line, column int, ok bool) {
	left := character - 1
	for i, p := range q.segments {
		length := len([]rune(p.text))
		if p.name != "" {
			_, order := (&Query{q.dialect, q.segments[:i+1]}).Bound()
			length = len("$") + len(strconv.Itoa(slices.Index(order, p.name)+1))
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
