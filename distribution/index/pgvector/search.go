package pgvector

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// statement collects the arguments of a statement.
type statement struct{ args []any }

// arg adds an argument and returns its placeholder.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// where returns the condition of a filter. Every filter can be expressed.
func (s *statement) where(f filter.Filter) string {
	if t := remote.Translate(f, dialect{s}); t.Found {
		return t.Query
	}
	return "true"
}

// Search returns the best matches.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return remote.Searches[table]{Dimensions: x.Dimensions, Find: x.find, ByVector: x.byVector, ByText: x.byText}.Run(ctx, q)
}

// byVector returns the nearest entries by the cosine.
func (x *Index) byVector(ctx context.Context, t *table, q index.Query) ([]index.Match, error) {
	var s statement
	vector := s.arg(vectorText(q.Vector)) + "::" + x.vector
	text := fmt.Sprintf(`SELECT node_id, text, metadata_::text, 1 - (embedding <=> %s) AS score, '' FROM %s
		WHERE node_id IS NOT NULL AND %s ORDER BY embedding <=> %s, node_id COLLATE "C" LIMIT %d`, vector, x.table, s.where(q.Filter), vector, q.Limit)
	h := newHNSW(x.Arguments.HNSWKwargs)
	if h == nil {
		return x.collect(ctx, x.pool, text, s.args)
	}
	var matches []index.Match
	err := pgx.BeginTxFunc(ctx, x.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		const maxEFSearch = 1000 // of pgvector
		if _, err = tx.Exec(ctx, fmt.Sprintf("SET LOCAL hnsw.ef_search = %d", min(max(h.EFSearch, q.Limit), maxEFSearch))); err != nil {
			return err
		}
		if t.iterative && q.Filter != nil {
			if _, err = tx.Exec(ctx, "SET LOCAL hnsw.iterative_scan = strict_order"); err != nil {
				return err
			}
		}
		matches, err = x.collect(ctx, tx, text, s.args)
		return err
	})
	return matches, err
}

// byText returns the best entries that contain any word of the text.
func (x *Index) byText(ctx context.Context, t *table, q index.Query) ([]index.Match, error) {
	var s statement
	config := literal(x.Arguments.TextSearchConfig) + "::regconfig"
	words := "to_tsvector(" + config + ", text)"
	if t.textColumn {
		words = "text_search_tsv"
	}
	query := s.arg(queryText(q.Text))
	highlight := "''"
	if q.Highlight {
		highlight = "ts_headline(" + config + ", text, query, 'StartSel=**, StopSel=**, MaxFragments=3, ShortWord=0, FragmentDelimiter=\x01')"
	}
	text := fmt.Sprintf(`SELECT node_id, text, metadata_::text, ts_rank(%[1]s, query, 1)::float8 AS score, %[2]s
		FROM %[3]s, (SELECT string_agg(quote_literal(lexeme), ' | ')::tsquery AS query FROM unnest(to_tsvector(%[4]s, %[5]s))) AS words
		WHERE %[1]s @@ query AND node_id IS NOT NULL AND %[6]s ORDER BY score DESC, node_id COLLATE "C" LIMIT %[7]d`,
		words, highlight, x.table, config, query, s.where(q.Filter), q.Limit)
	return x.collect(ctx, x.pool, text, s.args)
}

// maxQuery is the number of bytes of a text that are searched: PostgreSQL has limits for
// the words of a query.
const maxQuery = 32 << 10

// queryText returns the part of a text that PostgreSQL accepts.
func queryText(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", " "), " ")
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	return text
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads the matches of a statement.
func (x *Index) collect(ctx context.Context, from querier, text string, args []any) ([]index.Match, error) {
	rows, _ := from.Query(ctx, text, args...) // rows have the error
	matches, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (index.Match, error) {
		var r record
		var m index.Match
		var highlights string
		if err := row.Scan(&r.id, &r.text, &r.metadata, &m.Score, &highlights); err != nil {
			return m, err
		}
		m.Entry = r.entry()
		if highlights != "" {
			m.Highlights = strings.Split(highlights, "\x01")
		}
		return m, nil
	})
	if isMissing(err) {
		x.forget()
		return nil, nil
	}
	if err != nil {
		return nil, x.failure(err)
	}
	remote.Sort(matches)
	return matches, nil
}

// dialect makes conditions on the column of the metadata.
type dialect struct{ *statement }

// And requires all conditions.
func (dialect) And(of []string) string { return "(" + strings.Join(of, " AND ") + ")" }

// Or requires any condition.
func (dialect) Or(of []string) string { return "(" + strings.Join(of, " OR ") + ")" }

// Not requires that a condition is not satisfied.
func (dialect) Not(of string) string { return "NOT " + of }

// field returns the value of a field, null if it is missing.
func (d dialect) field(field string) string {
	return "(metadata_::jsonb #> " + d.arg(filter.Path(field)) + "::text[])"
}

// Compare compares the value, or the items of a list.
func (d dialect) Compare(c filter.Compare) (string, bool) {
	operator := map[filter.Op]string{filter.Equal: "==", filter.Less: "<", filter.LessOrEqual: "<=", filter.Greater: ">", filter.GreaterOrEqual: ">="}[c.Op]
	return d.exists(c.Field, "$[*] ? (@ "+operator+" $v)", c.Value)
}

// In compares the value, or the items of a list, with several values.
func (d dialect) In(c filter.In) (string, bool) {
	return d.exists(c.Field, "$[*] ? (@ == $v[*])", c.Values)
}

// exists returns the condition that a JSON path finds something in a field.
func (d dialect) exists(field, path string, value any) (string, bool) {
	data, err := remote.EncodeJSON(value)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("coalesce(jsonb_path_exists(%s, '%s', jsonb_build_object('v', %s::jsonb)), false)", d.field(field), path, d.arg(string(data))), true
}

// Exists requires a value.
func (d dialect) Exists(c filter.Exists) (string, bool) {
	return "coalesce(" + d.field(c.Field) + " NOT IN ('null', '[]'), false)", true
}

// Exact is true.
func (dialect) Exact() bool { return true }
