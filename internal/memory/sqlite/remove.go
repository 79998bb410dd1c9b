package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// What one transaction deletes: other writers wait meanwhile.
const (
	removedAtOnce = 500   // sessions
	removedRows   = 5_000 // messages, and events
)

// A session with a long history is deleted in two steps. The first gives it a memory that is
// not a text, so that nothing finds it and its id stays in use; then sweep deletes its rows in
// several transactions. After a crash between them the next deletion or Close goes on.
const (
	hideSession  = "UPDATE sessions SET memory = x'', session = id, version = 0, state = '{}' WHERE id = ?"
	selectHidden = "SELECT id FROM sessions WHERE memory = x'' LIMIT 1"
)

// RemoveAll deletes sessions in transactions of many, each session only if it still has
// its version.
func (s *Store) RemoveAll(ctx context.Context, mem string, sessions []store.SessionHead) (removed int, err error) {
	for batch := range slices.Chunk(sessions, removedAtOnce) {
		n := 0
		err := s.inTransaction(ctx, func(tx *sql.Tx) error {
			found, err := findUnchanged(ctx, tx, mem, batch)
			if n = len(found); err != nil {
				return err
			}
			return deleteSessions(ctx, tx, found)
		})
		if errors.Is(err, errNoDatabase) {
			return 0, nil
		}
		if err != nil {
			return removed, err
		}
		removed += n
		if err := s.sweep(ctx); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// stored is a session to delete.
type stored struct {
	id, version int64
	length      int64 // the position of its newest message
}

// findUnchanged returns those sessions, by ascending ids, that have the version of their head.
func findUnchanged(ctx context.Context, tx *sql.Tx, mem string, sessions []store.SessionHead) (found []stored, err error) {
	heads, args := map[string]*store.Head{}, []any{mem}
	for i := range sessions {
		heads[sessions[i].Session] = &sessions[i].Head
		args = append(args, sessions[i].Session)
	}
	query := "SELECT id, session, version FROM sessions WHERE memory = ? AND session IN (?" + strings.Repeat(",?", len(sessions)-1) + ") ORDER BY id" //nolint:gosec // only placeholders
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	for rows.Next() {
		var one stored
		var session string
		if err := rows.Scan(&one.id, &session, &one.version); err != nil {
			return nil, err
		}
		if head := heads[session]; head.Version == one.version {
			one.length = head.State.Last
			found = append(found, one)
		}
	}
	return found, rows.Err()
}

// findStored returns a session, or sql.ErrNoRows. Its length does not depend on a state that
// can be read.
func findStored(ctx context.Context, tx *sql.Tx, key store.Key) (one stored, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, version, coalesce((SELECT max(e.id) & 68719476735 FROM entries AS e
		WHERE e.id BETWEEN (sessions.id << 36) AND (sessions.id << 36 | 68719476735)), 0)
		FROM sessions WHERE memory = ? AND session = ?`, key.Memory, key.Session).Scan(&one.id, &one.version, &one.length)
	return one, err
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

// deleteSessions deletes sessions, whose ids ascend. It hides those for which it has deleted
// too many messages already.
func deleteSessions(ctx context.Context, tx *sql.Tx, sessions []stored) error {
	var ids []int64
	rows := int64(0)
	for _, one := range sessions {
		if rows+one.length <= removedRows {
			rows += one.length
			ids = append(ids, one.id)
		} else if _, err := tx.ExecContext(ctx, hideSession, one.id); err != nil {
			return err
		}
	}
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
func (s *Store) remove(ctx context.Context, key store.Key, version *int64) error {
	err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		one, err := findStored(ctx, tx, key)
		switch {
		case errors.Is(err, sql.ErrNoRows) && version == nil:
			return nil
		case errors.Is(err, sql.ErrNoRows), err == nil && version != nil && one.version != *version:
			return store.ErrConflict
		case err != nil:
			return err
		}
		return deleteSessions(ctx, tx, []stored{one})
	})
	switch {
	case err == nil:
		return s.sweep(ctx)
	case !errors.Is(err, errNoDatabase):
		return err
	case version != nil:
		return store.ErrConflict
	}
	return nil
}

// sweep deletes the rows of hidden sessions. It does not end with ctx: for its caller the
// session is deleted.
func (s *Store) sweep(ctx context.Context) error {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for {
		var id int64
		err := c.Statements.hidden.QueryRowContext(ctx).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return s.explain(err)
		}
		began := time.Now()
		if err := s.inTransaction(ctx, func(tx *sql.Tx) error { return deleteHidden(ctx, tx) }); err != nil {
			return err
		}
		time.Sleep(time.Since(began) / 4) // lets writers of other processes in, which do not queue
	}
}

// deleteHidden deletes a part of a hidden session, in the end the session. It looks for one
// in its transaction: another process may have deleted it, and a new session have its number.
func deleteHidden(ctx context.Context, tx *sql.Tx) error {
	var id, first int64
	err := tx.QueryRowContext(ctx, selectHidden).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(min(id), 0) FROM entries WHERE id BETWEEN (?1 << 36) AND (?1 << 36 | 68719476735)", id).Scan(&first)
	}
	if err == nil && first > 0 {
		_, err = tx.ExecContext(ctx, "DELETE FROM entries WHERE id BETWEEN ? AND ?", first, min(first+removedRows, (id+1)<<seqBits)-1)
	}
	if err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE session_id = ? ORDER BY id LIMIT ? + 0)", id, removedRows)
	if err != nil {
		return err
	}
	if events, err := done.RowsAffected(); err != nil || first > 0 || events > 0 {
		return err
	}
	return deleteSessions(ctx, tx, []stored{{id: id}})
}
