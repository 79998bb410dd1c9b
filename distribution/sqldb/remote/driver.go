package remote

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// Querier runs queries at a service. It is safe for concurrent use.
type Querier interface {
	// Query runs a query that has a ? for each value, and waits until it has ended.
	Query(ctx context.Context, text string, values []any) (driver.Rows, error)
	// Close closes idle connections.
	Close() error
}

// Open returns a pool for the queries of a service. Values are passed to the Querier as they are.
func Open(q Querier) *sql.DB { return sql.OpenDB(connector{q}) }

type connector struct{ Querier }

// Connect returns a connection, without a request.
func (c connector) Connect(context.Context) (driver.Conn, error) { return conn{c.Querier}, nil }

// Driver returns the driver, which opens nothing by name.
func (c connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

// Open returns an error: connections are opened by a connector.
func (noDriver) Open(string) (driver.Conn, error) { return nil, errors.New("use a Querier") }

// errReadOnly is the error of everything but queries.
var errReadOnly = errors.New("these connections only run queries")

// conn is a connection. It has no state.
type conn struct{ q Querier }

// Prepare returns a statement, without a request.
func (c conn) Prepare(query string) (driver.Stmt, error) { return stmt{c.q, query}, nil }

// Close has no effect: the connector closes HTTP connections.
func (c conn) Close() error { return nil }

// Begin returns an error.
func (c conn) Begin() (driver.Tx, error) { return nil, errReadOnly }

// stmt is a query with ? for each value.
type stmt struct {
	q     Querier
	query string
}

// Close has no effect.
func (s stmt) Close() error { return nil }

// NumInput returns that the service checks the number of values.
func (s stmt) NumInput() int { return -1 }

// CheckNamedValue accepts values of every type.
func (s stmt) CheckNamedValue(*driver.NamedValue) error { return nil }

// Exec returns an error.
func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errReadOnly }

// Query returns an error: database/sql calls QueryContext.
func (s stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errReadOnly }

// QueryContext runs the query.
func (s stmt) QueryContext(ctx context.Context, named []driver.NamedValue) (driver.Rows, error) {
	values := make([]any, len(named))
	for i, v := range named {
		values[i] = v.Value
	}
	return s.q.Query(ctx, s.query, values)
}

// ParameterError is the error of a value that the service does not accept.
type ParameterError struct {
	At     int // index of the value
	Reason string
}

// Error returns the number of the value and the reason.
func (e *ParameterError) Error() string { return fmt.Sprintf("value %d %s", e.At+1, e.Reason) }

// Column is a column of a result.
type Column struct {
	Name string
	Type string // of the database, such as BIGINT
}

// Page is a part of a result. A row is what Rows decodes.
type Page[Row any] struct {
	Rows []Row
	Next string // identifies the next page; empty for none
}

// Rows reads the results of a query page by page.
type Rows[Row any] struct {
	List   []Column
	Page   Page[Row]
	More   func(next string) (Page[Row], error)     // requests a page
	Decode func(row Row, into []driver.Value) error // sets the values of a row; those without one are nil
}

// Columns returns the names of the columns.
func (r *Rows[Row]) Columns() []string {
	names := make([]string, len(r.List))
	for i, c := range r.List {
		names[i] = c.Name
	}
	return names
}

// ColumnTypeDatabaseTypeName returns the type of a column.
func (r *Rows[Row]) ColumnTypeDatabaseTypeName(i int) string { return r.List[i].Type }

// Close drops the remaining rows.
func (r *Rows[Row]) Close() error {
	r.Page = Page[Row]{}
	return nil
}

// Next reads a row.
func (r *Rows[Row]) Next(into []driver.Value) error {
	for len(r.Page.Rows) == 0 {
		if r.Page.Next == "" {
			return io.EOF
		}
		page, err := r.More(r.Page.Next)
		if err != nil {
			return err
		}
		r.Page = page
	}
	row := r.Page.Rows[0]
	r.Page.Rows = r.Page.Rows[1:]
	clear(into)
	return r.Decode(row, into)
}
