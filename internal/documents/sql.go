package documents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// rows reads a document from each row of a query's result.
type rows struct {
	args      *spec.SQLArgs
	variables map[string]any
}

func newRows(args *spec.SQLArgs, env Env) (Source, error) {
	u, err := sqlquery.ParseURL(args.Connection)
	if err != nil {
		return nil, fmt.Errorf("connection: %w", err)
	}
	if _, err := sqlquery.Parse(args.Query, u.Dialect); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return &rows{args: args, variables: env.Variables}, nil
}

// Read runs the query.
func (r *rows) Read(ctx context.Context, emit Emit) error {
	source, err := sqldb.Open(ctx, r.args.Connection, r.args.Query, sqldb.Access{Supervisor: subprocess.SupervisorOf(ctx)})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // only reading connections
	var parameters []any
	for _, name := range source.Parameters() {
		v, ok := r.variables[name]
		if !ok {
			return fmt.Errorf("the query uses :%s, which is not an input of the step or not set", name)
		}
		parameters = append(parameters, v)
	}
	cursor, err := source.Query(ctx, parameters)
	if err != nil {
		return err
	}
	defer cursor.Close()
	columns := cursor.Columns()
	for _, name := range slices.Concat(r.args.ContentColumns, r.args.MetadataColumns, []string{r.args.IDColumn}) {
		if name != "" && !slices.Contains(columns, name) {
			return fmt.Errorf("the query returns no column %q; columns are %s", name, strings.Join(columns, ", "))
		}
	}
	for cursor.Next() {
		cells, err := cursor.Values()
		if err != nil {
			return err
		}
		doc, err := r.document(columns, cells)
		if err := emit(doc, err); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// document makes a document of a row. Its name and metadata are those of the columns.
func (r *rows) document(columns []string, cells []any) (*Document, error) {
	var text, key []string
	metadata := map[string]any{}
	content := func(name string) bool {
		if len(r.args.ContentColumns) > 0 {
			return slices.Contains(r.args.ContentColumns, name)
		}
		return name != r.args.IDColumn && !slices.Contains(r.args.MetadataColumns, name)
	}
	id := ""
	for i, name := range columns {
		cell := cellText(cells[i])
		key = append(key, name+"="+cell)
		if content(name) && cells[i] != nil {
			text = append(text, name+": "+cell)
		}
		if slices.Contains(r.args.MetadataColumns, name) {
			metadata[name] = value.ToGo(cells[i])
		}
		if name == r.args.IDColumn {
			id = cell
		}
	}
	if len(text) == 1 {
		_, text[0], _ = strings.Cut(text[0], ": ")
	}
	if r.args.IDColumn != "" && id == "" {
		return nil, fmt.Errorf("a row has no value in the column %q, which identifies it", r.args.IDColumn)
	}
	name := id
	if id == "" {
		id = strings.Join(key, "\n")
		name = documentID(id)
	}
	return &Document{ID: documentID(r.args.Query + "\n" + id), Name: name, Text: strings.Join(text, "\n"), Metadata: metadata}, nil
}

// cellText returns a cell as text, empty for null.
func cellText(cell any) string {
	if cell == nil {
		return ""
	}
	return value.Text(cell)
}
