package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Stat is what a cache holds of one version of one step.
type Stat struct {
	Scope
	Entries int64     // results
	Bytes   int64     // what they take, as stored
	Expired int64     // those of them that are no longer good
	Oldest  time.Time // when the oldest was made
	Used    time.Time // when one was last used
}

// Stats lists what the cache holds, by namespace, step and version; nothing where there is no file.
func (s *Store) Stats(ctx context.Context) ([]Stat, error) {
	f, err := s.open(ctx, false)
	if err != nil || f == nil {
		return nil, err
	}
	rows, err := f.read.QueryContext(ctx, `SELECT namespace, step, version, count(*), sum(length(value)),
		sum(CASE WHEN expires <= ? THEN 1 ELSE 0 END), min(created), max(used)
		FROM entries GROUP BY namespace, step, version ORDER BY namespace, step, version`, s.now().UnixMilli())
	if err != nil {
		return nil, s.explain(err)
	}
	var all []Stat
	for rows.Next() {
		var st Stat
		var oldest, used int64
		if err := rows.Scan(&st.Namespace, &st.Step, &st.Version, &st.Entries, &st.Bytes, &st.Expired, &oldest, &used); err != nil {
			return nil, errors.Join(s.explain(err), rows.Close())
		}
		st.Oldest, st.Used = time.UnixMilli(oldest), time.UnixMilli(used)
		all = append(all, st)
	}
	return all, s.explain(rows.Err())
}

// Clear removes the entries of the scopes that chosen says yes to, all where it
// is nil, gives the disk its room back and tells how many there were.
func (s *Store) Clear(ctx context.Context, chosen func(Scope) bool) (removed int64, err error) {
	stats, err := s.Stats(ctx)
	if err != nil || len(stats) == 0 {
		return 0, err
	}
	f, err := s.open(ctx, true)
	if err != nil {
		return 0, err
	}
	err = f.change(ctx, func(tx *sql.Tx) error {
		removed = 0
		for _, st := range stats {
			if chosen != nil && !chosen(st.Scope) {
				continue
			}
			done, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE namespace = ? AND step = ? AND version = ?", st.Namespace, st.Step, st.Version)
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			removed += n
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM totals WHERE entries = 0")
		return err
	})
	if err != nil {
		return 0, s.explain(err)
	}
	// Another process that reads at this moment keeps the room for a while.
	if err := drain(ctx, f.write); err != nil && !busy(err) {
		return removed, s.explain(err)
	}
	return removed, nil
}

// drain gives free pages back to the disk.
func drain(ctx context.Context, db *sql.DB) error {
	for _, pragma := range []string{"PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		rows, err := db.QueryContext(ctx, pragma) // the first works one page a step
		if err != nil {
			return err
		}
		for rows.Next() { // stepping is the work
			continue
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}
