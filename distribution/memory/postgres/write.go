package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Distinct returns true: a unique index rejects duplicates.
func (s *Store) Distinct() bool { return true }

// Apply makes one change by one statement. Its first part moves the head; the
// others find no head, and so do nothing, if the version was another.
func (s *Store) Apply(ctx context.Context, k store.Key, c store.Change) error {
	own := rand.Int64()
	st, err := build(k, c, own)
	if err != nil {
		return err
	}
	attempts := 0
	return s.use(ctx, true, func(ctx context.Context, pool *pgxpool.Pool) error {
		attempts++
		var id int64
		err := pool.QueryRow(ctx, s.sql(st.text()), st.args...).Scan(&id)
		var server *pgconn.PgError
		switch {
		case errors.As(err, &server) && server.Code == uniqueViolation && server.ConstraintName == s.server.Prefix+"entries_by_message":
			return store.ErrDuplicateMessage
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case attempts > 1: // the first attempt may have been committed before its connection broke
			return s.checkOwnChange(ctx, pool, k, own)
		}
		return store.ErrConflict
	})
}

// checkOwnChange returns ErrConflict unless own is the number of the session's
// newest change.
func (s *Store) checkOwnChange(ctx context.Context, pool *pgxpool.Pool, k store.Key, own int64) error {
	var change int64
	err := pool.QueryRow(ctx, s.sql("SELECT change FROM %ssessions WHERE memory_key = $1 AND session_key = $2"),
		key(k.Memory), key(k.Session)).Scan(&change)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && change != own {
		return store.ErrConflict
	}
	return err
}

// statement is composed of the parts that a change needs, in a fixed order, so
// that few different statements are prepared.
type statement struct {
	parts []string
	args  []any
}

// add appends a part; each ? is the placeholder of the next argument.
func (st *statement) add(part string, args ...any) {
	for _, a := range args {
		st.args = append(st.args, a)
		part = strings.Replace(part, "?", fmt.Sprintf("$%d", len(st.args)), 1)
	}
	st.parts = append(st.parts, part)
}

// text returns the whole statement. Its result is the session's id, or no row if
// the version was another.
func (st *statement) text() string {
	return "WITH " + strings.Join(st.parts, ",\n") + "\nSELECT id FROM head"
}

// build returns the statement of a change that is identified by the number own.
func build(k store.Key, c store.Change, own int64) (*statement, error) {
	record, err := storage.Encode(c)
	if err != nil {
		return nil, err
	}
	st := &statement{}
	if c.Version == 0 {
		st.add(`head AS (INSERT INTO %ssessions (memory_key, session_key, session, version, state, change)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id)`, key(k.Memory), key(k.Session), []byte(k.Session), c.Next, record.State, own)
	} else {
		st.add(`head AS (UPDATE %ssessions SET version = ?, state = ?, change = ?
WHERE memory_key = ? AND session_key = ? AND version = ? RETURNING id)`, c.Next, record.State, own, key(k.Memory), key(k.Session), c.Version)
	}
	st.addEntries(c.Entries, record.Messages)
	if len(record.Events) > 0 {
		st.add(`new_events AS (INSERT INTO %sevents (session_id, event)
SELECT head.id, e.event FROM head, unnest(?::text[]) WITH ORDINALITY AS e (event, n) ORDER BY e.n)`, record.Events)
	}
	st.addValues(c.Values)
	return st, nil
}

// columns holds entries column by column, as unnest expects them.
type columns struct {
	seq, turn, tokens []int64
	time              []time.Time
	failed            []bool
	key               [][]byte
}

func (st *statement) addEntries(entries []*store.Entry, messages []string) {
	if len(entries) == 0 {
		return
	}
	var c columns
	for _, e := range entries {
		c.seq, c.turn, c.tokens = append(c.seq, e.Seq), append(c.turn, e.Turn), append(c.tokens, int64(e.Tokens))
		c.time, c.failed = append(c.time, e.Time), append(c.failed, e.Status == store.Failed)
		c.key = append(c.key, key(e.Message.ID))
	}
	st.add(`new_entries AS (INSERT INTO %sentries (session_id, seq, turn, tokens, time, failed, message_key, message)
SELECT head.id, e.* FROM head, unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::timestamptz[], ?::boolean[], ?::bytea[], ?::text[]) AS e)`,
		c.seq, c.turn, c.tokens, c.time, c.failed, c.key, messages)
}

func (st *statement) addValues(values map[string][]byte) {
	var set, contents, unset [][]byte
	for name, value := range values {
		if value == nil {
			unset = append(unset, []byte(name))
		} else {
			set, contents = append(set, []byte(name)), append(contents, value)
		}
	}
	if len(set) > 0 {
		st.add(`new_values AS (INSERT INTO %snamed (session_id, name, value)
SELECT head.id, v.* FROM head, unnest(?::bytea[], ?::bytea[]) AS v
ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value)`, set, contents)
	}
	if len(unset) > 0 {
		st.add(`old_values AS (DELETE FROM %snamed USING head WHERE session_id = head.id AND name = ANY (?::bytea[]))`, unset)
	}
}

// Delete removes a session with everything that belongs to it.
func (s *Store) Delete(ctx context.Context, k store.Key) error {
	err := s.remove(ctx, k, "")
	if errors.Is(err, store.ErrConflict) {
		return nil // no such session
	}
	return err
}

// Remove deletes a session if its version is still version. If the connection
// breaks it tries again, so ErrConflict may mean that the first attempt succeeded.
func (s *Store) Remove(ctx context.Context, k store.Key, version int64) error {
	return s.remove(ctx, k, " AND version = $3", version)
}

// RemoveAll deletes sessions in transactions of many, each session only if it still has
// its version.
func (s *Store) RemoveAll(ctx context.Context, mem string, sessions []store.SessionHead) (removed int, err error) {
	return store.InBatches(sessions, removedAtOnce, func(batch []store.SessionHead) (int, error) { return s.removeBatch(ctx, mem, batch) })
}

// removedAtOnce is how many sessions one transaction deletes.
const removedAtOnce = 1000

func (s *Store) removeBatch(ctx context.Context, mem string, sessions []store.SessionHead) (removed int, err error) {
	keys, versions := make([][]byte, len(sessions)), make([]int64, len(sessions))
	for i := range sessions {
		keys[i], versions[i] = key(sessions[i].Session), sessions[i].Head.Version
	}
	err = s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, s.sql("DELETE FROM %ssessions s USING unnest($2::bytea[], $3::bigint[]) AS gone(session_key, version)"+
				" WHERE s.memory_key = $1 AND s.session_key = gone.session_key AND s.version = gone.version RETURNING s.id"), key(mem), keys, versions)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			var rest pgx.Batch
			for _, table := range []string{"entries", "events", "named"} {
				rest.Queue(s.sql("DELETE FROM %s"+table+" WHERE session_id = ANY($1)"), ids)
			}
			removed = len(ids)
			return tx.SendBatch(ctx, &rest).Close()
		})
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// remove deletes a session that meets a further condition, or returns
// ErrConflict. It deletes the head first, which waits for concurrent writers, so
// that the later statements see all that they wrote.
func (s *Store) remove(ctx context.Context, k store.Key, condition string, args ...any) error {
	args = append([]any{key(k.Memory), key(k.Session)}, args...)
	tables := false
	err := s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
		tables = true
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var id int64
			err := tx.QueryRow(ctx, s.sql("DELETE FROM %ssessions WHERE memory_key = $1 AND session_key = $2"+condition+" RETURNING id"), args...).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				return store.ErrConflict
			}
			if err != nil {
				return err
			}
			var rest pgx.Batch
			for _, table := range []string{"entries", "events", "named"} {
				rest.Queue(s.sql("DELETE FROM %s"+table+" WHERE session_id = $1"), id)
			}
			return tx.SendBatch(ctx, &rest).Close()
		})
	})
	if err == nil && !tables {
		return store.ErrConflict
	}
	return err
}
