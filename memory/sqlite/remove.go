package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

// removedAtOnce is how many sessions one transaction deletes: other writers wait meanwhile.
const removedAtOnce = 500

// RemoveAll deletes sessions in transactions of many, each session only if it still has
// its version.
func (s *Store) RemoveAll(ctx context.Context, mem string, sessions []memory.SessionHead) (removed int, err error) {
	for batch := range slices.Chunk(sessions, removedAtOnce) {
		n := 0
		err := s.inTransaction(ctx, func(tx *sql.Tx) error {
			ids, err := findUnchanged(ctx, tx, mem, batch)
			if n = len(ids); err != nil {
				return err
			}
			return deleteSessions(ctx, tx, ids)
		})
		if errors.Is(err, errNoDatabase) {
			return 0, nil
		}
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

// findUnchanged returns the ids, ascending, of those sessions that have the version of their head.
func findUnchanged(ctx context.Context, tx *sql.Tx, mem string, sessions []memory.SessionHead) (ids []int64, err error) {
	versions, args := map[string]int64{}, []any{mem}
	for i := range sessions {
		versions[sessions[i].Session] = sessions[i].Head.Version
		args = append(args, sessions[i].Session)
	}
	query := "SELECT id, session, version FROM sessions WHERE memory = ? AND session IN (?" + strings.Repeat(",?", len(sessions)-1) + ") ORDER BY id" //nolint:gosec // only placeholders
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	for rows.Next() {
		var id, version int64
		var session string
		if err := rows.Scan(&id, &session, &version); err != nil {
			return nil, err
		}
		if versions[session] == version {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// runs yields the first and the last number of each run of consecutive numbers. Sessions
// that were created one after the other are one range of every table.
func runs(ids []int64) iter.Seq2[int64, int64] {
	return func(yield func(from, to int64) bool) {
		for i := 0; i < len(ids); {
			last := i
			for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
				last++
			}
			if !yield(ids[i], ids[last]) {
				return
			}
			i = last + 1
		}
	}
}

// deleteSessions deletes sessions by their ids, which ascend.
func deleteSessions(ctx context.Context, tx *sql.Tx, ids []int64) error {
	for _, text := range []string{
		"DELETE FROM entries WHERE id BETWEEN (?1 << 36) AND (?2 << 36 | 68719476735)",
		"DELETE FROM events WHERE session_id BETWEEN ?1 AND ?2",
		"DELETE FROM named WHERE session_id BETWEEN ?1 AND ?2",
		"DELETE FROM sessions WHERE id BETWEEN ?1 AND ?2",
	} {
		statement, err := tx.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		for from, to := range runs(ids) {
			if _, err = statement.ExecContext(ctx, from, to); err != nil {
				break
			}
		}
		if err = errors.Join(err, statement.Close()); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a session; with a version, only if the session still has it.
func (s *Store) remove(ctx context.Context, key memory.Key, version *int64) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		var id, current int64
		err := tx.QueryRowContext(ctx, "SELECT id, version FROM sessions WHERE memory = ? AND session = ?", key.Memory, key.Session).Scan(&id, &current)
		switch {
		case errors.Is(err, sql.ErrNoRows) && version == nil:
			return nil
		case errors.Is(err, sql.ErrNoRows), err == nil && version != nil && current != *version:
			return memory.ErrConflict
		case err != nil:
			return err
		}
		return deleteSessions(ctx, tx, []int64{id})
	})
	switch {
	case !errors.Is(err, errNoDatabase):
		return err
	case version != nil:
		return memory.ErrConflict
	}
	return nil
}
