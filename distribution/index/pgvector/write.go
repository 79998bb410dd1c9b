package pgvector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

var errNull = errors.New("its id or metadata contains a null character, which PostgreSQL cannot store")

// columns are the values of rows, by column.
type columns struct{ ids, texts, metadata, vectors []string }

// Put inserts or replaces entries.
func (x *Index) Put(ctx context.Context, entries []index.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return remote.Writes[table]{Dimensions: x.Dimensions, BatchSize: batchSize, Create: x.create, Write: x.write}.Put(ctx, entries)
}

// write replaces the rows of entries.
func (x *Index) write(ctx context.Context, _ *table, entries []index.Entry, rejected remote.Rejected) error {
	var c columns
	for _, e := range entries {
		if err := c.add(e); err != nil {
			rejected[e.ID] = err
		}
	}
	err := x.replace(ctx, c)
	if isMissing(err) {
		x.forget()
	}
	return x.failure(err)
}

// add appends the row of an entry.
func (c *columns) add(e index.Entry) error {
	metadata, err := remote.Metadata(e, false)
	if err != nil {
		return err
	}
	data, err := remote.EncodeJSON(metadata)
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte(`\u0000`)) || strings.ContainsRune(e.ID, 0) {
		return errNull
	}
	c.ids, c.texts = append(c.ids, e.ID), append(c.texts, strings.ReplaceAll(e.Text, "\x00", ""))
	c.metadata, c.vectors = append(c.metadata, string(data)), append(c.vectors, vectorText(e.Vector))
	return nil
}

// vectorText returns a vector as PostgreSQL reads it.
func vectorText(v []float32) string {
	b := make([]byte, 0, 12*len(v))
	b = append(b, '[')
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

// replace writes rows in one transaction. The column node_id is not unique in the tables
// of LlamaIndex, so a lock keeps two writers from adding one entry twice.
func (x *Index) replace(ctx context.Context, c columns) error {
	if len(c.ids) == 0 {
		return nil
	}
	return pgx.BeginFunc(ctx, x.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", x.table); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM "+x.table+" WHERE node_id = ANY($1)", c.ids); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (text, metadata_, node_id, embedding)
			SELECT t, m::json, n, e::%s FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS r(t, m, n, e)`, x.table, x.vector),
			c.texts, c.metadata, c.ids, c.vectors)
		return err
	})
}

// Delete removes entries.
func (x *Index) Delete(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for batch := range slices.Chunk(ids, batchSize) {
		_, err := x.pool.Exec(ctx, "DELETE FROM "+x.table+" WHERE node_id = ANY($1)", storable(batch))
		if isMissing(err) {
			return nil
		}
		if err != nil {
			return x.failure(err)
		}
	}
	return nil
}

// storable returns the ids that a row can have.
func storable(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.ContainsRune(id, 0) })
}

// Hashes returns the hashes of entries.
func (x *Index) Hashes(ctx context.Context, ids []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	hashes := map[string]string{}
	for batch := range slices.Chunk(ids, 10*batchSize) {
		rows, _ := x.pool.Query(ctx, "SELECT node_id, coalesce(metadata_->>'"+remote.KeyHash+"', '') FROM "+x.table+" WHERE node_id = ANY($1)", storable(batch)) // rows have the error
		var id, hash string
		_, err := pgx.ForEachRow(rows, []any{&id, &hash}, func() error { hashes[id] = hash; return nil })
		if isMissing(err) {
			return hashes, nil
		}
		if err != nil {
			return nil, x.failure(err)
		}
	}
	return hashes, nil
}

// Entries lists entries.
func (x *Index) Entries(ctx context.Context, p index.Page) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		left := p.Limit
		for {
			entries, err := x.page(ctx, p)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(entries) < batchSize {
				return
			}
			p.After = entries[len(entries)-1].ID
		}
	}
}

// page reads the next entries of a listing.
func (x *Index) page(ctx context.Context, p index.Page) ([]index.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var s statement
	where := s.where(p.Filter)
	text := fmt.Sprintf(`SELECT DISTINCT ON (node_id COLLATE "C") node_id, text, metadata_::text FROM %s
		WHERE node_id COLLATE "C" > %s AND %s ORDER BY node_id COLLATE "C", id DESC LIMIT %d`, x.table, s.arg(p.After), where, batchSize)
	rows, _ := x.pool.Query(ctx, text, s.args...) // rows have the error
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (index.Entry, error) {
		var r record
		err := row.Scan(&r.id, &r.text, &r.metadata)
		return r.entry(), err
	})
	if isMissing(err) {
		return nil, nil
	}
	return entries, x.failure(err)
}

// record is a row of the table.
type record struct {
	id, text string
	metadata *string
}

func (r record) entry() index.Entry {
	var metadata map[string]any
	if r.metadata != nil {
		_ = remote.DecodeJSON([]byte(*r.metadata), &metadata) // PostgreSQL stores only valid JSON; other values are no metadata
	}
	e := remote.Entry(r.id, r.text, metadata)
	e.ID = r.id
	return e
}

// Stats describes the table.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s := index.Stats{Dimensions: x.Dimensions, Detail: "PostgreSQL table " + x.table}
	err := x.pool.QueryRow(ctx, fmt.Sprintf(`SELECT count(*), count(DISTINCT nullif(metadata_->>'ref_doc_id', '%s')), pg_total_relation_size('%s') FROM %s`,
		remote.NoDocument, x.table, x.table)).Scan(&s.Entries, &s.Documents, &s.Bytes)
	if isMissing(err) {
		return s, nil
	}
	return s, x.failure(err)
}

// Clear removes the table.
func (x *Index) Clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	x.forget()
	_, err := x.pool.Exec(ctx, "DROP TABLE IF EXISTS "+x.table)
	return x.failure(err)
}

// Close closes the connections.
func (x *Index) Close() error {
	x.pool.Close()
	return nil
}
