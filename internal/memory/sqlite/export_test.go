package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
)

// RemovedRows is how many messages one transaction deletes.
const RemovedRows = removedRows

// BeginDelete makes the first transaction of Delete, as a process does that is killed then.
func (s *Store) BeginDelete(ctx context.Context, key store.Key) error {
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		one, err := findStored(ctx, tx, key)
		if err != nil {
			return err
		}
		return deleteSessions(ctx, tx, []stored{one})
	})
}

// Rows returns the number of rows of all tables.
func (s *Store) Rows(ctx context.Context) (n int, err error) {
	c, err := s.open(ctx, false)
	if err != nil {
		return 0, err
	}
	err = c.Read.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM entries) + (SELECT count(*) FROM events) + (SELECT count(*) FROM named)").Scan(&n)
	return n, err
}

// LimitPages sets the maximum size of the file, in pages of 4 KiB.
func (s *Store) LimitPages(ctx context.Context, pages string) error {
	c, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = c.Write.ExecContext(ctx, "PRAGMA max_page_count = "+pages)
	return err
}

// DisableBusyTimeout makes writes give up immediately if the file is locked.
func (s *Store) DisableBusyTimeout(ctx context.Context) error {
	c, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = c.Write.ExecContext(ctx, "PRAGMA busy_timeout = 1")
	return err
}

// Plans returns SQLite's query plans for the queries of every append and turn.
func (s *Store) Plans(ctx context.Context) ([]string, error) {
	c, err := s.open(ctx, true)
	if err != nil {
		return nil, err
	}
	var plans []string
	for statement, args := range map[string]int{selectLiveByID: 3, selectRange: 8} {
		rows, err := c.Read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+statement, slices.Repeat([]any{"1"}, args)...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var id, parent, unused int
			var plan string
			if err := rows.Scan(&id, &parent, &unused, &plan); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			plans = append(plans, plan)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return plans, nil
}
