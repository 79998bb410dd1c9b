package embedded

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/vectors"
)

// partSize is the number of entries in a part of an index without clusters.
const partSize = 1 << 14

// partOf returns the cell of an entry in an index without clusters.
func partOf(entry int64) int64 { return -1 - entry/partSize }

// cell is a group of vectors: a part, or a cluster.
type cell struct {
	resident bool    // the fields below hold its vectors
	entries  []int64 // of each row, ascending; negative for deleted ones
	deleted  int     // number of negative ones
	rows     *vectors.Matrix
}

// bytes returns the size in memory.
func (c *cell) bytes() int64 {
	if c.rows == nil {
		return 0
	}
	return int64(c.rows.Rows()) * int64(c.rows.RowBytes()+8)
}

// cache holds the vectors that searches compare. It follows the file: every search reads
// the numbers in state, and then what was written since.
type cache struct {
	limit int64 // of bytes; 0 for none

	mu       sync.RWMutex // guards what follows
	state    state
	entry    int64 // greatest number that was read
	deletion int64 // greatest number that was read
	bytes    int64 // of the resident cells
	cells    map[int64]*cell
	order    []int64         // keys of cells, ascending
	centers  *vectors.Matrix // of the clusters; row i is cell i+1
	models   []string        // that made the vectors of the entries
}

// querier is a transaction or a database.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// refresh reads what changed since the last search. It returns false if there are no
// vectors.
func (x *Index) refresh(ctx context.Context, c *conn) (bool, error) {
	st, err := readState(ctx, c.Statements.state)
	if err != nil {
		return false, err
	}
	if err := x.check(st); err != nil || st.dimensions == 0 {
		return false, err
	}
	k := &c.Statements.cache
	k.mu.RLock()
	current := k.state == st
	k.mu.RUnlock()
	if current {
		return true, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	tx, err := c.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	if st, err = readState(ctx, tx.StmtContext(ctx, c.Statements.state)); err != nil || st.dimensions == 0 {
		return false, err
	}
	k.models, err = readModels(ctx, tx)
	if err = errors.Join(err, x.read(ctx, tx, k, st)); err != nil {
		k.state = state{} // read all again
		return false, err
	}
	k.state = st
	return true, nil
}

// read brings the cache to a state. The caller holds the lock.
func (x *Index) read(ctx context.Context, tx *sql.Tx, k *cache, st state) error {
	if k.state.generation != st.generation {
		return x.readAll(ctx, tx, k, st)
	}
	if err := x.readNew(ctx, tx, k, st); err != nil {
		return err
	}
	return k.readDeletions(ctx, tx)
}

// readAll reads the cells, the first ones to memory, up to the limit.
func (x *Index) readAll(ctx context.Context, tx *sql.Tx, k *cache, st state) (err error) {
	k.cells, k.order, k.bytes, k.centers = map[int64]*cell{}, nil, 0, nil
	if err := tx.QueryRowContext(ctx, "SELECT ifnull((SELECT max(entry) FROM entries), 0), ifnull((SELECT max(number) FROM deletions), 0)").Scan(&k.entry, &k.deletion); err != nil {
		return err
	}
	if st.clustered > 0 {
		if k.centers, err = x.centers(ctx, tx, st); err != nil {
			return err
		}
	}
	for number := int64(-1 << 62); ; {
		var next sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT min(cell) FROM codes WHERE cell > ?", number).Scan(&next); err != nil {
			return err
		}
		if !next.Valid {
			return nil
		}
		number = next.Int64
		one := &cell{}
		k.cells[number], k.order = one, append(k.order, number)
		if k.limit > 0 && k.bytes >= k.limit {
			continue
		}
		if err := x.readCell(ctx, tx, number, one, st.dimensions); err != nil {
			return err
		}
		if k.bytes += one.bytes(); k.limit > 0 && k.bytes > k.limit {
			k.bytes -= one.bytes()
			*one = cell{}
		}
	}
}

// readCell reads the vectors of a cell.
func (x *Index) readCell(ctx context.Context, db querier, number int64, to *cell, dimensions int) error {
	rows, err := db.QueryContext(ctx, "SELECT entry, code FROM codes WHERE cell = ? ORDER BY entry", number)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	*to = cell{resident: true, rows: vectors.NewMatrix(x.opts.Encoding, dimensions)}
	for rows.Next() {
		var entry int64
		var code sql.RawBytes
		if err := rows.Scan(&entry, &code); err != nil {
			return err
		}
		if err := to.rows.AppendEncoded(code); err != nil {
			return userErrorf("index file %s is damaged: %v", x.opts.Path, err)
		}
		to.entries = append(to.entries, entry)
	}
	return rows.Err()
}

// readNew reads the vectors that were added.
func (x *Index) readNew(ctx context.Context, tx *sql.Tx, k *cache, st state) error {
	rows, err := tx.QueryContext(ctx, "SELECT e.entry, c.cell, c.code FROM entries e JOIN codes c USING (entry) WHERE e.entry > ? ORDER BY e.entry", k.entry)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var entry, number int64
		var code sql.RawBytes
		if err := rows.Scan(&entry, &number, &code); err != nil {
			return err
		}
		one := k.cells[number]
		if one == nil {
			one = &cell{resident: k.limit == 0 || k.bytes < k.limit, rows: vectors.NewMatrix(x.opts.Encoding, st.dimensions)}
			at, _ := slices.BinarySearch(k.order, number)
			k.cells[number], k.order = one, slices.Insert(k.order, at, number)
		}
		k.entry = entry
		if !one.resident {
			continue
		}
		if err := one.rows.AppendEncoded(code); err != nil {
			return userErrorf("index file %s is damaged: %v", x.opts.Path, err)
		}
		one.entries = append(one.entries, entry)
		if k.bytes += int64(one.rows.RowBytes() + 8); k.limit > 0 && k.bytes > k.limit {
			k.bytes -= one.bytes()
			*one = cell{}
		}
	}
	return rows.Err()
}

// readDeletions marks the vectors that were deleted.
func (k *cache) readDeletions(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT number, entry, cell FROM deletions WHERE number > ? ORDER BY number", k.deletion)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var entry, number int64
		if err := rows.Scan(&k.deletion, &entry, &number); err != nil {
			return err
		}
		if one := k.cells[number]; one != nil && one.resident {
			k.bytes -= one.remove(entry)
		}
	}
	return rows.Err()
}

// remove marks a row, and drops the marked ones once they are many. It returns the bytes
// that became free.
func (c *cell) remove(entry int64) int64 {
	at, found := slices.BinarySearchFunc(c.entries, entry, func(e, wanted int64) int {
		return int(max(-1, min(1, max(e, -e)-wanted)))
	})
	if !found || c.entries[at] < 0 {
		return 0
	}
	c.entries[at] = -entry
	if c.deleted++; c.deleted < 64 || c.deleted*4 < len(c.entries) {
		return 0
	}
	before := c.bytes()
	kept := &cell{resident: true, rows: c.rows.Like()}
	for row, e := range c.entries {
		if e > 0 {
			kept.entries = append(kept.entries, e)
			kept.rows.AppendRow(c.rows, row)
		}
	}
	*c = *kept
	return before - c.bytes()
}
