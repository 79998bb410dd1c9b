package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Replace replaces stored records in one transaction, if the session has the version.
func (s *Store) Replace(ctx context.Context, key store.Key, r store.Replacement) error {
	records, err := storage.EncodeReplacement(r)
	if err != nil {
		return err
	}
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(ctx, "UPDATE sessions SET version = ? WHERE memory = ? AND session = ? AND version = ? RETURNING id",
			r.Next, key.Memory, key.Session, r.Version).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrConflict
		}
		if err == nil {
			err = replaceMessages(ctx, tx, id, r, records)
		}
		if err == nil {
			err = replaceEvents(ctx, tx, id, records)
		}
		for name, value := range r.Values {
			switch {
			case err != nil:
			case value == nil:
				_, err = tx.ExecContext(ctx, "DELETE FROM named WHERE session_id = ? AND name = ?", id, name)
			default:
				_, err = tx.ExecContext(ctx, "INSERT INTO named (session_id, name, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", id, name, value)
			}
		}
		return err
	})
	if errors.Is(err, errNoDatabase) {
		return store.ErrConflict
	}
	return err
}

func replaceMessages(ctx context.Context, tx *sql.Tx, id int64, r store.Replacement, records storage.Replaced) error {
	for seq, text := range records.Messages {
		done, err := tx.ExecContext(ctx, "UPDATE entries SET message = ? WHERE id = ? AND message_id = ?", text, id<<seqBits|seq, r.Messages[seq].ID)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("message %d to be replaced does not exist", seq))
		}
	}
	return nil
}

// replaceEvents reads the ids of all events to find those with the wanted indexes.
func replaceEvents(ctx context.Context, tx *sql.Tx, id int64, records storage.Replaced) error {
	if len(records.Events) == 0 {
		return nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT id FROM events WHERE session_id = ? ORDER BY id", id)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	var ids []int64
	for rows.Next() {
		var event int64
		if err := rows.Scan(&event); err != nil {
			return err
		}
		ids = append(ids, event)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i, text := range records.Events {
		if i < 0 || i >= int64(len(ids)) {
			return fmt.Errorf("event %d to be replaced does not exist", i)
		}
		if _, err := tx.ExecContext(ctx, "UPDATE events SET event = ? WHERE id = ?", text, ids[i]); err != nil {
			return err
		}
	}
	return nil
}
