package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// Stat describes the entries of one scope.
type Stat struct {
	Scope
	Entries int64     // count
	Bytes   int64     // their size, as stored
	Expired int64     // count of expired entries
	Oldest  time.Time // time of the oldest
	Used    time.Time // time of the last use
}

// Stats returns the entries by namespace, step and version.
func (s *Store) Stats(ctx context.Context) ([]Stat, error) {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return nil, err
	}
	rows, err := c.Read.QueryContext(ctx, `SELECT namespace, step, version, count(*), sum(length(value)),
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

// Clear removes the entries of the scopes that match, or all entries if match is
// nil, shrinks the file and returns the number of removed entries.
func (s *Store) Clear(ctx context.Context, match func(Scope) bool) (removed int64, err error) {
	return s.remove(ctx, match, "1")
}

// unused selects expired entries and entries last used before a time.
const unused = "(expires <= ? OR used < ?)"

// Unused returns the number and the size of the entries of the scopes that match, which are expired
// or were last used before a time; the zero time selects expired ones only.
func (s *Store) Unused(ctx context.Context, match func(Scope) bool, before time.Time) (entries, bytes int64, err error) {
	stats, err := s.Stats(ctx)
	if err != nil || len(stats) == 0 {
		return 0, 0, err
	}
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return 0, 0, err
	}
	for _, st := range stats {
		if !match(st.Scope) {
			continue
		}
		var n, size int64
		err := c.Read.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(length(value)), 0) FROM entries WHERE namespace = ? AND step = ? AND version = ? AND "+unused,
			st.Namespace, st.Step, st.Version, s.now().UnixMilli(), milliseconds(before)).Scan(&n, &size)
		if err != nil {
			return 0, 0, s.explain(err)
		}
		entries, bytes = entries+n, bytes+size
	}
	return entries, bytes, nil
}

// Prune removes the entries of Unused and returns their number.
func (s *Store) Prune(ctx context.Context, match func(Scope) bool, before time.Time) (removed int64, err error) {
	return s.remove(ctx, match, unused, s.now().UnixMilli(), milliseconds(before))
}

// milliseconds returns a time as the columns have it; 0 for the zero time.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// remove removes the entries of the scopes that match for which a condition holds.
func (s *Store) remove(ctx context.Context, match func(Scope) bool, condition string, args ...any) (removed int64, err error) {
	stats, err := s.Stats(ctx)
	if err != nil || len(stats) == 0 {
		return 0, err
	}
	c, err := s.open(ctx, true)
	if err != nil {
		return 0, err
	}
	err = c.Change(ctx, func(tx *sql.Tx) error {
		removed = 0
		for _, st := range stats {
			if match != nil && !match(st.Scope) {
				continue
			}
			done, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE namespace = ? AND step = ? AND version = ? AND "+condition, //nolint:gosec // a constant
				append([]any{st.Namespace, st.Step, st.Version}, args...)...)
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
	// The file cannot shrink while another process reads it.
	if err := shrink(ctx, c.Write); err != nil && !sqlitefile.IsBusy(err) {
		return removed, s.explain(err)
	}
	return removed, nil
}

// shrink returns free pages to the file system.
func shrink(ctx context.Context, db *sql.DB) error {
	for _, pragma := range []string{"PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		rows, err := db.QueryContext(ctx, pragma) // each step of the first one frees a page
		if err != nil {
			return err
		}
		for rows.Next() { // no results: each step does work
			continue
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	return nil
}
