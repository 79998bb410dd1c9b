package embedded

import (
	"context"
	"database/sql"
	"math"

	"github.com/qtype-dev/qtype/internal/vectors"
)

const (
	sampledPerCluster = 50 // vectors that the centers are computed from
	iterations        = 8
	// growth is how many times as many entries as at the last clustering make new
	// clusters; the entries between go to the nearest of the old ones.
	growth = 4
)

// wantsClusters reports whether an index of this number of entries gets new clusters.
func (x *Index) wantsClusters(st state, entries int64) bool {
	least := int64(autoClusters)
	switch {
	case !x.opts.Vectors || x.opts.Approximate == Never:
		return false
	case x.opts.Approximate == Always:
		least = minClusters
	}
	return entries >= least && entries >= growth*st.clustered
}

// centers reads the centers of the clusters.
func (x *Index) centers(ctx context.Context, db querier, st state) (*vectors.Matrix, error) {
	rows, err := db.QueryContext(ctx, "SELECT center FROM clusters ORDER BY cell")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	m := vectors.NewMatrix(x.opts.Encoding, st.dimensions)
	for rows.Next() {
		var center sql.RawBytes
		if err := rows.Scan(&center); err != nil {
			return nil, err
		}
		if err := m.AppendEncoded(center); err != nil {
			return nil, userErrorf("index file %s is damaged: %v", x.opts.Path, err)
		}
	}
	return m, rows.Err()
}

// cluster makes clusters if the index has become large enough: it moves every vector to
// the cell of its nearest center, in one transaction.
func (x *Index) cluster(ctx context.Context, c *conn) error {
	if !x.opts.Vectors || x.opts.Approximate == Never {
		return nil
	}
	return c.Change(ctx, func(tx *sql.Tx) error {
		var st state
		var entries int64
		if err := tx.QueryRowContext(ctx, "SELECT dimensions, clustered FROM state").Scan(&st.dimensions, &st.clustered); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM entries").Scan(&entries); err != nil || !x.wantsClusters(st, entries) {
			return err
		}
		centers, err := x.computeCenters(ctx, tx, st, entries)
		if err != nil {
			return err
		}
		if err := x.moveAll(ctx, tx, centers); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE state SET clustered = ?, generation = generation + 1, writes = writes + 1", entries)
		return err
	})
}

// computeCenters clusters a sample of the vectors.
func (x *Index) computeCenters(ctx context.Context, tx *sql.Tx, st state, entries int64) (*vectors.Matrix, error) {
	k := int64(math.Sqrt(float64(entries)))
	step := max(1, entries/(k*sampledPerCluster))
	rows, err := tx.QueryContext(ctx, "SELECT code FROM codes WHERE entry % ? = 0", step)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	sample := vectors.NewMatrix(x.opts.Encoding, st.dimensions)
	for rows.Next() {
		var code sql.RawBytes
		if err := rows.Scan(&code); err != nil {
			return nil, err
		}
		if err := sample.AppendEncoded(code); err != nil {
			return nil, userErrorf("index file %s is damaged: %v", x.opts.Path, err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return vectors.Cluster(ctx, sample, int(k), iterations)
}

// moveAll writes the codes in the order of their new cells, which keeps the pages of a
// cell together.
func (x *Index) moveAll(ctx context.Context, tx *sql.Tx, centers *vectors.Matrix) error {
	for _, statement := range []string{
		"DELETE FROM clusters", "DELETE FROM deletions",
		"CREATE TEMP TABLE IF NOT EXISTS moves (cell INTEGER NOT NULL, entry INTEGER NOT NULL, old INTEGER NOT NULL, PRIMARY KEY (cell, entry)) WITHOUT ROWID",
		"DELETE FROM temp.moves",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for i := range centers.Rows() {
		if _, err := tx.ExecContext(ctx, "INSERT INTO clusters VALUES (?, ?)", i+1, centers.Encode(i)); err != nil {
			return err
		}
	}
	if err := x.assignAll(ctx, tx, centers); err != nil {
		return err
	}
	for _, statement := range []string{
		"ALTER TABLE codes RENAME TO old_codes", "DROP INDEX codes_entry", codesTable,
		"INSERT INTO codes SELECT m.cell, m.entry, o.code FROM temp.moves m JOIN old_codes o ON o.cell = m.old AND o.entry = m.entry ORDER BY m.cell, m.entry",
		codesIndex, "DROP TABLE old_codes", "DROP TABLE temp.moves",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// assignAll finds the new cell of every vector.
func (x *Index) assignAll(ctx context.Context, tx *sql.Tx, centers *vectors.Matrix) error {
	rows, err := tx.QueryContext(ctx, "SELECT cell, entry, code FROM codes")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	insert, err := tx.PrepareContext(ctx, "INSERT INTO temp.moves VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for rows.Next() {
		var old, entry int64
		var code sql.RawBytes
		if err := rows.Scan(&old, &entry, &code); err != nil {
			return err
		}
		one := centers.Like()
		if err := one.AppendEncoded(code); err != nil {
			return userErrorf("index file %s is damaged: %v", x.opts.Path, err)
		}
		if _, err := insert.ExecContext(ctx, centers.Nearest(one.RowQuery(0))+1, entry, old); err != nil {
			return err
		}
	}
	return rows.Err()
}
