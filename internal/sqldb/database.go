// Package sqldb runs the queries of documents on SQLite, DuckDB, PostgreSQL, MySQL, MariaDB, SQL Server,
// Amazon Athena, Google BigQuery and Snowflake. Values are always bound as parameters, and
// rows are streamed.
//
// A database is opened with the first query. Connections are read-only: the database itself rejects
// changes. SQL Server and the services have no such connections: there only statements that read
// are accepted.
package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec/value"
)

// idleTime is how long an unused connection stays open.
const idleTime = 5 * time.Minute

// Source is a query of a database, with its own connection pool. It is safe for
// concurrent use. The pool is unlimited: with a limit, a query that runs while the
// rows of another are read could wait forever.
type Source struct {
	url    *sqlquery.URL
	query  *sqlquery.Query
	text   string   // as in the document
	bound  string   // for the driver
	order  []string // parameter of each placeholder
	pool   *sql.DB
	driver Driver

	mu       sync.Mutex
	prepared *sql.Stmt // nil before the first query
}

// Open returns a Source without connecting. Errors describe an invalid URL or query,
// without the password. The policy of the document of the context decides whether it may use
// the database.
func Open(ctx context.Context, address, text string, access Access) (*Source, error) {
	u, err := sqlquery.ParseURL(address)
	if err != nil {
		return nil, err
	}
	driver, err := driverOf(ctx, u.Dialect)
	if err != nil {
		return nil, err
	}
	if err := driver.allowed(trust.From(ctx), u); err != nil {
		return nil, err
	}
	if u.Dialect.IsFile() && u.Database != "" {
		if place := trust.From(ctx).Place(filePath(u)); place != filePath(u) {
			u.Database = place
			delete(u.Options, "uri")
		}
	}
	if kind := access.kind(); kind != "" {
		if err := u.Dialect.CheckAuth(kind); err != nil {
			return nil, err
		}
	}
	q, err := sqlquery.Parse(text, u.Dialect)
	if err != nil {
		return nil, err
	}
	s := &Source{url: u, query: q, text: text, driver: driver}
	s.bound, s.order = q.Bound()
	if s.pool, err = driver.openPool(ctx, u, access); err != nil {
		return nil, s.explain(err)
	}
	if s.driver.Idle > 0 {
		s.pool.SetMaxIdleConns(math.MaxInt) // one is expensive to open, and soon closed
	}
	s.pool.SetConnMaxIdleTime(cmp.Or(s.driver.Idle, idleTime))
	return s, nil
}

// Parameters returns the names of the arguments of Query, in order. A name may occur
// repeatedly.
func (s *Source) Parameters() []string { return s.order }

// Close closes all connections.
func (s *Source) Close() error { return s.pool.Close() }

// Query runs the query with a value for each of Parameters. The error is an *Error.
// The cursor holds a connection until Close.
func (s *Source) Query(ctx context.Context, args []any) (*Cursor, error) {
	converted := make([]any, len(args))
	for i, arg := range args {
		converted[i] = s.driver.Argument(arg)
	}
	c, err := s.rows(ctx, converted)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, s.explain(err)
	}
	return c, nil
}

// rows prepares the query, if necessary, and runs it.
func (s *Source) rows(ctx context.Context, args []any) (*Cursor, error) {
	if s.url.Dialect.IsFile() {
		if err := checkFile(s.url); err != nil {
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
		_ = rows.Close() // the first error is the cause
		return nil, err
	}
	return c, nil
}

// prepare returns the prepared query. The pool prepares it again for each new
// connection.
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
	s.prepared = prepared // closed with the pool
	return prepared, nil
}

// errNoRows reports a statement that is not a query.
var errNoRows = errors.New("the statement returns no rows: use a SELECT")

// Cursor reads the rows of a query. It holds one row and is not safe for concurrent
// use.
type Cursor struct {
	source  *Source
	ctx     context.Context
	rows    *sql.Rows
	columns []string
	make    []func(any) any // converter of each column
	cells   []any
	into    []any // pointers to cells
}

// describe reads the columns.
func (c *Cursor) describe() error {
	types, err := c.rows.ColumnTypes()
	if err != nil {
		return err
	}
	if len(types) == 0 {
		if c.rows.Next(); c.rows.Err() != nil {
			return c.rows.Err() // some drivers report an error only here
		}
		return errNoRows
	}
	c.cells, c.into = make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		c.columns = append(c.columns, t.Name())
		c.make = append(c.make, c.source.driver.Value(strings.ToUpper(t.DatabaseTypeName())))
		c.into[i] = &c.cells[i]
	}
	return nil
}

// Columns returns the names of the columns.
func (c *Cursor) Columns() []string { return c.columns }

// Next reads the next row. It returns false after the last row and after an error.
func (c *Cursor) Next() bool { return c.rows.Next() }

// Values returns the current row as run-time values; see package value.
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

// Err returns the error that ended the rows, if any.
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

// Close releases the connection without reading the remaining rows.
func (c *Cursor) Close() { _ = c.rows.Close() } // reading only

// TextArgument converts a run-time value for drivers that accept Go's values. Dates and times are text
// in ISO form, without an offset, as such databases store them; lists and records are JSON.
func TextArgument(v any) any {
	switch v := v.(type) {
	case nil, string, bool, []byte, int64, float64:
		return v
	case value.DateTime:
		const plain = "2006-01-02 15:04:05.999999"
		if v.Zoned {
			return v.Time.UTC().Format(plain)
		}
		return v.Time.Format(plain)
	case []any, *value.Record:
		return string(value.JSON(v))
	}
	return value.Text(v) // a ChatMessage is its text
}

// sqliteValue converts values of an SQLite column.
func sqliteValue(typ string) func(any) any {
	return func(v any) any {
		if t, ok := v.(time.Time); ok {
			return TimeValue(t, typ == "DATE", t.Location() != time.UTC)
		}
		return v
	}
}

// TimeValue returns a date, or a date and time in UTC or without a zone. A time outside of
// the years 1 to 9999 is a text in ISO 8601, which no date can be.
func TimeValue(t time.Time, isDate, zoned bool) any {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		layout := "-01-02T15:04:05.999999999"
		if isDate {
			layout = "-01-02"
		}
		return fmt.Sprintf("%+05d", year) + t.UTC().Format(layout)
	}
	at := value.DateTime{Time: t.UTC(), Zoned: zoned}
	if isDate {
		return at.Date()
	}
	return at
}

// Error is an error of a query or its database.
type Error struct {
	Database string // its URL without the password
	Reason   string // message for the user
	Err      error  // the cause
}

// Error returns the database and the reason.
func (e *Error) Error() string { return e.Database + ": " + e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// explain converts a driver's error to an *Error: one line, without the password.
func (s *Source) explain(err error) error {
	var explained *Error
	if errors.As(err, &explained) {
		return err
	}
	reason := textfmt.OneLine(s.errorText(err))
	return &Error{Database: s.url.String(), Reason: httpx.Scrub(reason, s.url.Password), Err: err}
}

func (s *Source) errorText(err error) string {
	if s.driver.Reason != nil {
		if reason := s.driver.Reason(Statement{Query: s.query, Text: s.text, Order: s.order}, err); reason != "" {
			return reason
		}
	}
	var netErr *net.OpError
	switch {
	case errors.As(err, &netErr) && netErr.Op == "dial":
		return "cannot connect: " + netErr.Err.Error()
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was lost"
	}
	return err.Error()
}

// sqliteReason returns SQLite's message without its number.
func sqliteReason(_ Statement, err error) string {
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return ""
	}
	reason := sqliteErr.Error()
	if i := strings.LastIndex(reason, " ("); i > 0 && strings.HasSuffix(reason, ")") {
		reason = reason[:i]
	}
	return strings.TrimPrefix(reason, "SQL logic error: ")
}
