package athena

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxParameter is the length of the longest value that the service accepts for a placeholder.
const maxParameter = 1024

// errReadOnly is the error of everything but queries.
var errReadOnly = errors.New("connections of Athena only run queries")

// conn is a connection. It has no state.
type conn struct{ *Connector }

// Prepare returns a statement, without a request.
func (c conn) Prepare(query string) (driver.Stmt, error) { return stmt{c.Connector, query}, nil }

// Close has no effect: the Connector closes HTTP connections.
func (c conn) Close() error { return nil }

// Begin returns an error.
func (c conn) Begin() (driver.Tx, error) { return nil, errReadOnly }

// stmt is a query with ? for each value. Values are literals of SQL as text.
type stmt struct {
	connector *Connector
	query     string
}

// Close has no effect.
func (s stmt) Close() error { return nil }

// NumInput returns that the service checks the number of values.
func (s stmt) NumInput() int { return -1 }

// Exec returns an error.
func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errReadOnly }

// Query runs the query.
func (s stmt) Query(values []driver.Value) (driver.Rows, error) {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return s.QueryContext(context.Background(), named)
}

// ParameterError is the error of a value that the service does not accept.
type ParameterError struct {
	At     int // index of the value
	Reason string
}

// Error returns the number of the value and the reason.
func (e *ParameterError) Error() string { return fmt.Sprintf("value %d %s", e.At+1, e.Reason) }

// QueryContext runs the query and waits until it has ended.
func (s stmt) QueryContext(ctx context.Context, values []driver.NamedValue) (driver.Rows, error) {
	parameters := make([]string, len(values))
	for i, v := range values {
		text, ok := v.Value.(string)
		switch {
		case !ok:
			return nil, &ParameterError{i, "is not a literal"}
		case utf8.RuneCountInString(text) > maxParameter:
			return nil, &ParameterError{i, fmt.Sprintf("has more than %d characters", maxParameter)}
		}
		parameters[i] = text
	}
	id, err := s.connector.start(ctx, s.query, parameters)
	if err != nil {
		return nil, err
	}
	hasHeader, err := s.connector.wait(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &rows{ctx: ctx, connector: s.connector, id: id}
	return r, r.first(hasHeader)
}
