package athena

import (
	"cmp"
	"context"
	"database/sql/driver"
	"strings"

	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
)

// pageSize is the number of rows of a request, the most that the service has.
const pageSize = 1000

// row is a row of texts; nil is NULL.
type row struct {
	Data []struct{ VarCharValue *string }
}

// results is a page of results.
type results struct {
	NextToken string
	ResultSet struct {
		Rows              []row
		ResultSetMetadata struct {
			ColumnInfo []struct{ Name, Label, Type string }
		}
	}
}

// rows returns the results of a query. The results of a SELECT begin with a row of names.
func (s *Service) rows(ctx context.Context, id string, hasHeader bool) (driver.Rows, error) {
	read := func(next string) (answer results, err error) {
		in := object{"QueryExecutionId": id, "MaxResults": pageSize}
		set(in, "NextToken", next)
		return answer, s.call(ctx, "GetQueryResults", in, &answer)
	}
	first, err := read("")
	if err != nil {
		return nil, err
	}
	r := &remote.Rows[row]{Page: page(first), Decode: decode, More: func(next string) (remote.Page[row], error) {
		answer, err := read(next)
		return page(answer), err
	}}
	for _, c := range first.ResultSet.ResultSetMetadata.ColumnInfo {
		r.List = append(r.List, remote.Column{Name: cmp.Or(c.Label, c.Name), Type: strings.ToUpper(c.Type)})
	}
	if hasHeader && len(r.Page.Rows) > 0 {
		r.Page.Rows = r.Page.Rows[1:]
	}
	return r, nil
}

func page(answer results) remote.Page[row] {
	return remote.Page[row]{Rows: answer.ResultSet.Rows, Next: answer.NextToken}
}

// decode sets the values of a row: texts, or nil for NULL.
func decode(r row, into []driver.Value) error {
	for i := range min(len(r.Data), len(into)) {
		if text := r.Data[i].VarCharValue; text != nil {
			into[i] = *text
		}
	}
	return nil
}
