package embedded

import (
	"context"
	"database/sql"
	"errors"
)

// lastModel returns the model of the entries that were written last; empty for unknown.
func lastModel(ctx context.Context, tx *sql.Tx) (model string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT model FROM models ORDER BY first DESC LIMIT 1").Scan(&model)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return model, err
}

// recordModel records that the entries from the next one on are of a model, if those before are of another
// one. The numbers of entries only grow, so that this needs no value for each entry.
func (w *writer) recordModel(model string) error {
	if model == "" || model == w.model || !w.x.opts.Vectors {
		return nil
	}
	first := int64(0) // of the entries of an earlier version as well
	if w.model != "" {
		if err := w.tx.QueryRowContext(w.ctx, "SELECT ifnull(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'entries'").Scan(&first); err != nil {
			return err
		}
	}
	if _, err := w.tx.ExecContext(w.ctx, "INSERT OR REPLACE INTO models VALUES (?, ?)", first, model); err != nil {
		return err
	}
	w.model = model
	// Models before that of the first entry have no entries.
	_, err := w.tx.ExecContext(w.ctx, "DELETE FROM models WHERE first < (SELECT max(first) FROM models WHERE first <= (SELECT min(entry) FROM entries))")
	return err
}

// readModels returns the models that have entries.
func readModels(ctx context.Context, db querier) ([]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT model FROM models m WHERE EXISTS (SELECT 1 FROM entries WHERE entry >= m.first
		AND entry < (SELECT ifnull(min(first), 9223372036854775807) FROM models n WHERE n.first > m.first))`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // only read
	var all []string
	for rows.Next() {
		var model string
		if err := rows.Scan(&model); err != nil {
			return nil, err
		}
		all = append(all, model)
	}
	return all, rows.Err()
}

// checkModel returns an error if the index has vectors of another model than the query: even vectors of the
// same length cannot be compared. The caller holds the lock of the cache.
func (x *Index) checkModel(k *cache, model string) error {
	for _, other := range k.models {
		if model != "" && other != model {
			return userErrorf("index file %s has vectors of the embedding model %s, which cannot be compared with those of %s: ingest again, with sync: true if documents were removed, or clear the index first", x.opts.Path, other, model)
		}
	}
	return nil
}
