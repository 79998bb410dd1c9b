package athena

import (
	"context"
	"database/sql/driver"
	"io"
	"strings"
)

// pageSize is the number of rows of a request, the most that the service has.
const pageSize = 1000

// row is a row of texts; nil is NULL.
type row struct {
	Data []struct{ VarCharValue *string }
}

// column describes a column.
type column struct{ Name, Label, Type string }

// rows reads the results of a query page by page.
type rows struct {
	ctx       context.Context
	connector *Connector
	id        string
	columns   []column
	page      []row
	next      string // token of the next page, empty for none
}

// first reads the first page. The results of a SELECT begin with a row of names.
func (r *rows) first(hasHeader bool) error {
	if err := r.read(); err != nil {
		return err
	}
	if hasHeader && len(r.page) > 0 {
		r.page = r.page[1:]
	}
	return nil
}

// read reads the next page.
func (r *rows) read() error {
	in := object{"QueryExecutionId": r.id, "MaxResults": pageSize}
	set(in, "NextToken", r.next)
	var answer struct {
		NextToken string
		ResultSet struct {
			Rows              []row
			ResultSetMetadata struct{ ColumnInfo []column }
		}
	}
	if err := r.connector.call(r.ctx, "GetQueryResults", in, &answer); err != nil {
		return err
	}
	r.next, r.page = answer.NextToken, answer.ResultSet.Rows
	if r.columns == nil {
		r.columns = answer.ResultSet.ResultSetMetadata.ColumnInfo
	}
	return nil
}

// Columns returns the names of the columns.
func (r *rows) Columns() []string {
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.Label
		if names[i] == "" {
			names[i] = c.Name
		}
	}
	return names
}

// ColumnTypeDatabaseTypeName returns the type of a column, such as BIGINT.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return strings.ToUpper(r.columns[i].Type) }

// Close drops the remaining rows.
func (r *rows) Close() error {
	r.page, r.next = nil, ""
	return nil
}

// Next reads a row. Values are texts, or nil for NULL.
func (r *rows) Next(into []driver.Value) error {
	for len(r.page) == 0 {
		if r.next == "" {
			return io.EOF
		}
		if err := r.read(); err != nil {
			return err
		}
	}
	data := r.page[0].Data
	r.page = r.page[1:]
	clear(into)
	for i := range min(len(data), len(into)) {
		if text := data[i].VarCharValue; text != nil {
			into[i] = *text
		}
	}
	return nil
}
