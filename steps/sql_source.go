package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// sqlSource runs a query, one row for each row of its result. Variables that the row
// has keep their values; columns without an output are ignored.
type sqlSource struct {
	id     string
	source *sqldb.Source
	args   []slot // the variable of each placeholder
	outs   []slot
}

func buildSQLSource(s *spec.SQLSource, env *Env) (Runner, error) {
	if env.Database == nil {
		return nil, fmt.Errorf("no databases are configured")
	}
	source, err := env.Database(s)
	if err != nil {
		return nil, err
	}
	q := &sqlSource{id: s.ID, source: source}
	inputs, err := env.slots(s.Inputs)
	if err != nil {
		return nil, err
	}
	for _, name := range source.Parameters() {
		i := slices.IndexFunc(inputs, func(in slot) bool { return in.of.ID == name })
		if i < 0 {
			return nil, fmt.Errorf("the query uses :%s, which is not an input; %s", name, inputsAre(inputs))
		}
		q.args = append(q.args, inputs[i])
	}
	q.outs, err = env.slots(s.Outputs)
	return q, err
}

// inputsAre lists the inputs for an error message.
func inputsAre(inputs []slot) string {
	if len(inputs) == 0 {
		return "the step has none"
	}
	names := make([]string, len(inputs))
	for i, in := range inputs {
		names[i] = in.of.ID
	}
	return "inputs are " + strings.Join(names, ", ")
}

// Process emits one row for each row of the result, as the database sends it. A result
// row that does not fit fails alone; a failed query fails the input row.
func (q *sqlSource) Process(ctx context.Context, row *Row, emit Emit) error {
	args := make([]any, len(q.args))
	for i, arg := range q.args {
		v, err := arg.read(row)
		if err != nil {
			return err
		}
		args[i] = v
	}
	cursor, err := q.source.Query(ctx, args)
	if err != nil {
		return err
	}
	defer cursor.Close()
	at, err := q.columns(cursor.Columns())
	if err != nil {
		return err
	}
	for number := 1; cursor.Next(); number++ {
		cells, err := cursor.Values()
		if err != nil {
			return err
		}
		c := row.Clone()
		if err := q.fill(c, at, cells); err != nil {
			c.Err = &Error{Step: q.id, Err: fmt.Errorf("result row %d: %w", number, err)}
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// columns finds the column of each output, -1 for none. A column that differs only in
// case is used if there is no exact match, because databases change the case of names.
func (q *sqlSource) columns(names []string) ([]int, error) {
	at := make([]int, len(q.outs))
	for i, out := range q.outs {
		same := func(name string) bool { return name == out.of.ID }
		at[i] = slices.IndexFunc(names, same)
		if at[i] < 0 {
			same = func(name string) bool { return strings.EqualFold(name, out.of.ID) }
			at[i] = slices.IndexFunc(names, same)
		}
		switch {
		case at[i] < 0 && !out.of.IsOptional():
			return nil, fmt.Errorf("the query returns no column %q; columns are %s", out.of.ID, listed(names))
		case at[i] >= 0 && slices.ContainsFunc(names[at[i]+1:], same):
			return nil, fmt.Errorf("the query returns two columns %q; name them with AS", out.of.ID)
		}
	}
	return at, nil
}

// fill sets the outputs, converted to their declared types.
func (q *sqlSource) fill(row *Row, at []int, cells []any) error {
	for i, out := range q.outs {
		var raw any
		if at[i] >= 0 {
			raw = fromDatabase(out.of.Type, cells[at[i]])
		}
		v, err := value.Assign(out.of, raw)
		if err != nil {
			return fmt.Errorf("%s: %w", out.of.ID, err)
		}
		out.write(row, v)
	}
	return nil
}

// fromDatabase converts values for which databases have no type: JSON text to a list or
// a record, and numbers, dates and booleans to text, as the declared type requires.
func fromDatabase(t spec.Type, raw any) any {
	switch v := raw.(type) {
	case string:
		body := strings.TrimSpace(v)
		if (t.IsList() || t.IsRecord()) && (strings.HasPrefix(body, "[") || strings.HasPrefix(body, "{")) {
			if parsed, err := value.Parse(body); err == nil {
				return parsed
			}
		}
	case []byte, []any, nil:
	default:
		if t.Is("text") {
			return value.Text(v)
		}
	}
	return raw
}
