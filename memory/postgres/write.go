package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/memory"
)

// Distinct is true: an index sees to it.
func (s *Store) Distinct() bool { return true }

// Apply makes one change by one statement. Its parts see the head that its
// first part moved, and nothing where that found another version.
func (s *Store) Apply(ctx context.Context, k memory.Key, c memory.Change) error {
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
		var fault *pgconn.PgError
		switch {
		case errors.As(err, &fault) && fault.Code == uniqueViolation && fault.ConstraintName == s.prefix+"entries_by_message":
			return memory.ErrDuplicateMessage
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		case attempts > 1: // the first attempt may have been made before its connection broke
			return s.checkOwnChange(ctx, pool, k, own)
		}
		return memory.ErrConflict
	})
}

// checkOwnChange is nil where the newest change of the session is the one with this
// number, else ErrConflict.
func (s *Store) checkOwnChange(ctx context.Context, pool *pgxpool.Pool, k memory.Key, own int64) error {
	var change int64
	err := pool.QueryRow(ctx, s.sql("SELECT change FROM %ssessions WHERE memory_key = $1 AND session_key = $2"),
		key(k.Memory), key(k.Session)).Scan(&change)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && change != own {
		return memory.ErrConflict
	}
	return err
}

// statement is made of the parts that a change needs, so that few different
// ones are prepared: one for each set of parts.
type statement struct {
	parts []string
	args  []any
}

// add adds a part; each ? stands for the next of the arguments.
func (st *statement) add(part string, args ...any) {
	for _, a := range args {
		st.args = append(st.args, a)
		part = strings.Replace(part, "?", fmt.Sprintf("$%d", len(st.args)), 1)
	}
	st.parts = append(st.parts, part)
}

// text is the whole statement: it yields the session's number, or no row where
// the version was another.
func (st *statement) text() string {
	return "WITH " + strings.Join(st.parts, ",\n") + "\nSELECT id FROM head"
}

// build makes the statement of a change with the number own.
func build(k memory.Key, c memory.Change, own int64) (*statement, error) {
	st := &statement{}
	state, err := json.Marshal(c.State)
	if err != nil {
		return nil, err
	}
	if c.Version == 0 {
		st.add(`head AS (INSERT INTO %ssessions (memory_key, session_key, session, version, state, change)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id)`, key(k.Memory), key(k.Session), []byte(k.Session), c.Next, string(state), own)
	} else {
		st.add(`head AS (UPDATE %ssessions SET version = ?, state = ?, change = ?
WHERE memory_key = ? AND session_key = ? AND version = ? RETURNING id)`, c.Next, string(state), own, key(k.Memory), key(k.Session), c.Version)
	}
	if err := st.addEntries(c.Entries); err != nil {
		return nil, err
	}
	if err := st.addEvents(c.Events); err != nil {
		return nil, err
	}
	st.addValues(c.Values)
	return st, nil
}

// columns are entries side by side, as unnest takes them.
type columns struct {
	seq, turn, tokens []int64
	time              []time.Time
	failed            []bool
	key               [][]byte
	message           []string
}

func (st *statement) addEntries(entries []*memory.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var c columns
	for _, e := range entries {
		raw, err := e.Message.MarshalJSON()
		if err != nil {
			return err
		}
		c.seq, c.turn, c.tokens = append(c.seq, e.Seq), append(c.turn, e.Turn), append(c.tokens, int64(e.Tokens))
		c.time, c.failed = append(c.time, e.Time), append(c.failed, e.Status == memory.Failed)
		c.key, c.message = append(c.key, key(e.Message.ID)), append(c.message, string(raw))
	}
	st.add(`said AS (INSERT INTO %sentries (session_id, seq, turn, tokens, time, failed, message_key, message)
SELECT head.id, e.* FROM head, unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::timestamptz[], ?::boolean[], ?::bytea[], ?::text[]) AS e)`,
		c.seq, c.turn, c.tokens, c.time, c.failed, c.key, c.message)
	return nil
}

func (st *statement) addEvents(events []memory.Event) error {
	if len(events) == 0 {
		return nil
	}
	texts := make([]string, len(events))
	for i, e := range events {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		texts[i] = string(raw)
	}
	st.add(`happened AS (INSERT INTO %sevents (session_id, event)
SELECT head.id, e.event FROM head, unnest(?::text[]) WITH ORDINALITY AS e (event, n) ORDER BY e.n)`, texts)
	return nil
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
		st.add(`kept AS (INSERT INTO %snamed (session_id, name, value)
SELECT head.id, v.* FROM head, unnest(?::bytea[], ?::bytea[]) AS v
ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value)`, set, contents)
	}
	if len(unset) > 0 {
		st.add(`dropped AS (DELETE FROM %snamed USING head WHERE session_id = head.id AND name = ANY (?::bytea[]))`, unset)
	}
}

// expand puts prefix in the place of every %s.
func expand(text, prefix string) string { return strings.ReplaceAll(text, "%s", prefix) }

// Delete removes everything that the session has.
func (s *Store) Delete(ctx context.Context, k memory.Key) error {
	err := s.remove(ctx, k, "")
	if errors.Is(err, memory.ErrConflict) {
		return nil // there is nothing to delete
	}
	return err
}

// Remove is Delete for a session that still has the version. Where the answer
// was lost with the connection it asks once more, and ErrConflict may then say
// of a session that this call deleted that it is gone.
func (s *Store) Remove(ctx context.Context, k memory.Key, version int64) error {
	return s.remove(ctx, k, " AND version = $3", version)
}

// remove deletes a session that fulfils a further condition; it answers
// ErrConflict where there is none. The head goes first: that waits for a
// writer, so the later statements see all that it wrote, and whoever comes
// after finds no session.
func (s *Store) remove(ctx context.Context, k memory.Key, condition string, args ...any) error {
	args = append([]any{key(k.Memory), key(k.Session)}, args...)
	tables := false
	err := s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
		tables = true
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var id int64
			err := tx.QueryRow(ctx, s.sql("DELETE FROM %ssessions WHERE memory_key = $1 AND session_key = $2"+condition+" RETURNING id"), args...).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				return memory.ErrConflict
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
		return memory.ErrConflict
	}
	return err
}
