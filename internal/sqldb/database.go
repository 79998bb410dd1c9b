// Package database runs the queries of documents: over SQLite files, PostgreSQL,
// MySQL and MariaDB, with bound parameters alone, row by row.
//
// A database is opened with the first query and read only: what a query would
// change is refused by the database itself.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// idleTime is how long a connection that nobody uses stays open.
const idleTime = 5 * time.Minute

// Source is one query of one database, with a pool of connections of its own.
// It is safe for concurrent use. There may be as many connections as rows are
// read at once: one that is bound to wait for another row's would never come.
type Source struct {
	url   *sqlquery.URL
	query *sqlquery.Query
	text  string   // as the document has it
	bound string   // as the driver takes it
	order []string // the parameter of each placeholder
	pool  *sql.DB

	mu       sync.Mutex
	prepared *sql.Stmt // nil before the first rows
}

// Open makes a Source without connecting to anything. The error says what of
// the URL or of the query cannot be used; it never holds the password.
func Open(address, text string) (*Source, error) {
	u, err := sqlquery.ParseURL(address)
	if err != nil {
		return nil, err
	}
	q, err := sqlquery.Parse(text, u.Dialect)
	if err != nil {
		return nil, err
	}
	s := &Source{url: u, query: q, text: text}
	s.bound, s.order = q.Bound()
	switch u.Dialect {
	case sqlquery.PostgreSQL:
		s.pool, err = openPostgres(u)
	case sqlquery.MySQL:
		s.pool, err = openMySQL(u)
	default:
		s.pool, err = openSQLite(u)
	}
	if err != nil {
		return nil, s.explain(err)
	}
	s.pool.SetConnMaxIdleTime(idleTime)
	return s, nil
}

// Parameters are the names of the values that Query wants, in their order; one
// may stand several times.
func (s *Source) Parameters() []string { return s.order }

// Close ends all connections.
func (s *Source) Close() error { return s.pool.Close() }

// Query runs the query with one value for each of Parameters. The error is an
// *Error that names the database. The cursor holds a connection until Close.
func (s *Source) Query(ctx context.Context, args []any) (*Cursor, error) {
	given := make([]any, len(args))
	for i, arg := range args {
		given[i] = argument(s.url.Dialect, arg)
	}
	c, err := s.rows(ctx, given)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.explain(err)
	}
	return c, nil
}

// rows prepares the query for the connection, where it is not yet, and runs it.
func (s *Source) rows(ctx context.Context, args []any) (*Cursor, error) {
	if s.url.Dialect == sqlquery.SQLite {
		if err := there(s.url); err != nil {
			return nil, err
		}
	}
	prepared, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := prepared.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	c := &Cursor{source: s, ctx: ctx, rows: rows}
	if err := errors.Join(rows.Err(), c.describe()); err != nil {
		_ = rows.Close() // the first error says more
		return nil, err
	}
	return c, nil
}

// prepare is the prepared query, which the pool prepares again for each new connection.
func (s *Source) prepare(ctx context.Context) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared != nil {
		return s.prepared, nil
	}
	prepared, err := s.pool.PrepareContext(ctx, s.bound)
	if err != nil {
		return nil, err
	}
	s.prepared = prepared // Close of the pool gives it back
	return prepared, nil
}

// errNoRows says that a statement is not one that reads.
var errNoRows = errors.New("the statement gives no rows: a SELECT is expected")

// Cursor is the rows of a query as the database sends them; it holds one at a
// time. It is for one goroutine.
type Cursor struct {
	source  *Source
	ctx     context.Context
	rows    *sql.Rows
	columns []string
	make    []func(any) any // for each column: a run-time value of what the driver gives
	cells   []any
	into    []any // pointers to cells
}

// describe finds out what the columns are.
func (c *Cursor) describe() error {
	types, err := c.rows.ColumnTypes()
	if err != nil {
		return err
	}
	if len(types) == 0 {
		if c.rows.Next(); c.rows.Err() != nil {
			return c.rows.Err() // some drivers tell a fault only here
		}
		return errNoRows
	}
	c.cells, c.into = make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		c.columns = append(c.columns, t.Name())
		c.make = append(c.make, maker(c.source.url.Dialect, t.DatabaseTypeName()))
		c.into[i] = &c.cells[i]
	}
	return nil
}

// Columns are the names of the columns in their order.
func (c *Cursor) Columns() []string { return c.columns }

// Next reads the next row; false after the last and after a fault, which Err tells.
func (c *Cursor) Next() bool { return c.rows.Next() }

// Values are the row's values as package value has them; the caller's own.
func (c *Cursor) Values() ([]any, error) {
	clear(c.cells)
	if err := c.rows.Scan(c.into...); err != nil {
		return nil, c.source.explain(err)
	}
	out := make([]any, len(c.cells))
	for i, v := range c.cells {
		if v != nil {
			out[i] = c.make[i](v)
		}
	}
	return out, nil
}

// Err is what ended the rows before their time.
func (c *Cursor) Err() error {
	err := c.rows.Err()
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	}
	return c.source.explain(err)
}

// Close gives the connection back. What the database had not sent yet is not read.
func (c *Cursor) Close() { _ = c.rows.Close() } // it was only read
