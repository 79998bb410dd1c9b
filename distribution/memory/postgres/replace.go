package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Replace replaces stored records in one transaction, if the session has the version.
func (s *Store) Replace(ctx context.Context, k store.Key, r store.Replacement) error {
	records, err := storage.EncodeReplacement(r)
	if err != nil {
		return err
	}
	own, attempts, tables := rand.Int64(), 0, false
	err = s.use(ctx, false, func(ctx context.Context, pool *pgxpool.Pool) error {
		attempts++
		tables = true
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return s.replace(ctx, tx, k, r, records, own) })
		if errors.Is(err, store.ErrConflict) && attempts > 1 { // the first attempt may have been committed before its connection broke
			return s.checkOwnChange(ctx, pool, k, own)
		}
		return err
	})
	if err == nil && !tables {
		return store.ErrConflict
	}
	return err
}

func (s *Store) replace(ctx context.Context, tx pgx.Tx, k store.Key, r store.Replacement, records storage.Replaced, own int64) error {
	var id int64
	err := tx.QueryRow(ctx, s.sql("UPDATE %ssessions SET version = $1, change = $2 WHERE memory_key = $3 AND session_key = $4 AND version = $5 RETURNING id"),
		r.Next, own, key(k.Memory), key(k.Session), r.Version).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.ErrConflict
	}
	if err != nil {
		return err
	}
	if err := s.replaceMessages(ctx, tx, id, r, records); err != nil {
		return err
	}
	if err := s.replaceEvents(ctx, tx, id, records); err != nil {
		return err
	}
	return s.replaceValues(ctx, tx, id, r.Values)
}

func (s *Store) replaceMessages(ctx context.Context, tx pgx.Tx, id int64, r store.Replacement, records storage.Replaced) error {
	if len(records.Messages) == 0 {
		return nil
	}
	var seqs []int64
	var keys [][]byte
	var messages []string
	for seq, text := range records.Messages {
		seqs, keys, messages = append(seqs, seq), append(keys, key(r.Messages[seq].ID)), append(messages, text)
	}
	done, err := tx.Exec(ctx, s.sql(`UPDATE %sentries AS e SET message = n.message FROM unnest($2::bigint[], $3::bytea[], $4::text[]) AS n (seq, key, message)
WHERE e.session_id = $1 AND e.seq = n.seq AND e.message_key = n.key`), id, seqs, keys, messages)
	if err == nil && done.RowsAffected() != int64(len(seqs)) {
		err = fmt.Errorf("of %d messages to be replaced %d exist", len(seqs), done.RowsAffected())
	}
	return err
}

func (s *Store) replaceEvents(ctx context.Context, tx pgx.Tx, id int64, records storage.Replaced) error {
	if len(records.Events) == 0 {
		return nil
	}
	var indexes []int64
	var events []string
	for i, text := range records.Events {
		indexes, events = append(indexes, i), append(events, text)
	}
	done, err := tx.Exec(ctx, s.sql(`UPDATE %sevents AS e SET event = n.event
FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS i FROM %sevents WHERE session_id = $1) AS o
JOIN unnest($2::bigint[], $3::text[]) AS n (i, event) ON n.i = o.i
WHERE e.session_id = $1 AND e.id = o.id`), id, indexes, events)
	if err == nil && done.RowsAffected() != int64(len(indexes)) {
		err = fmt.Errorf("of %d events to be replaced %d exist", len(indexes), done.RowsAffected())
	}
	return err
}

func (s *Store) replaceValues(ctx context.Context, tx pgx.Tx, id int64, values map[string][]byte) error {
	for name, value := range values {
		var err error
		if value == nil {
			_, err = tx.Exec(ctx, s.sql("DELETE FROM %snamed WHERE session_id = $1 AND name = $2"), id, []byte(name))
		} else {
			_, err = tx.Exec(ctx, s.sql(`INSERT INTO %snamed (session_id, name, value) VALUES ($1, $2, $3)
ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value`), id, []byte(name), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
