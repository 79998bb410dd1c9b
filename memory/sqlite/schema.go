package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
)

// application marks the file as ours in SQLite's header: "qtyp".
const application = 0x71747970

// seqBits is how many bits of an entry's key count within the session; the
// bits above are the session's number. So a session's history is one run of the
// table, in order, without an index: 2^36 messages in each of 2^27 sessions.
const seqBits = 36

// migrations bring the tables from one version to the next; the file's
// user_version is how many of them were applied. What is here is never changed:
// a new version is a new line.
func migrations() []string {
	return []string{`
CREATE TABLE sessions (
	id      INTEGER PRIMARY KEY,
	memory  TEXT NOT NULL,
	session TEXT NOT NULL,
	version INTEGER NOT NULL,
	state   TEXT NOT NULL, -- JSON
	UNIQUE (memory, session)
);
CREATE TABLE entries (
	id         INTEGER PRIMARY KEY, -- session_id << 36 | seq
	session_id INTEGER NOT NULL,
	turn       INTEGER NOT NULL,
	tokens     INTEGER NOT NULL,
	time       INTEGER NOT NULL, -- microseconds since 1970
	failed     INTEGER NOT NULL,
	message_id TEXT NOT NULL,
	message    TEXT NOT NULL -- JSON, in the language's own form
);
CREATE UNIQUE INDEX entries_by_message ON entries (session_id, message_id) WHERE failed = 0;
CREATE TABLE events (
	id         INTEGER PRIMARY KEY,
	session_id INTEGER NOT NULL,
	event      TEXT NOT NULL -- JSON
);
CREATE INDEX events_by_session ON events (session_id);
CREATE TABLE named (
	session_id INTEGER NOT NULL,
	name       TEXT NOT NULL,
	value      BLOB NOT NULL,
	PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
`}
}

// migrate brings the file's tables up to date, in one transaction.
func migrate(ctx context.Context, db *sql.DB, path string) error {
	current, err := version(ctx, db, path)
	all := migrations()
	if err != nil || current == len(all) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if current, err = version(ctx, tx, path); err != nil {
		return err
	}
	for _, statements := range all[current:] {
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return err
		}
	}
	header := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(all), application)
	if _, err := tx.ExecContext(ctx, header); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version is how many migrations the file has seen; an error where it is not ours.
func version(ctx context.Context, db querier, path string) (int, error) {
	var current, owner, tables int
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)")
	if err := row.Scan(&current, &owner, &tables); err != nil {
		return 0, err
	}
	switch {
	case owner == 0 && current == 0 && tables == 0:
		return 0, nil
	case owner != application:
		return 0, &memory.StoreError{Place: path, Problem: memory.Corrupt, Message: "it is a database of another program"}
	case current > len(migrations()):
		return 0, &memory.StoreError{Place: path, Problem: memory.TooNew,
			Message: fmt.Sprintf("a newer version of qtype wrote it (format %d, this one knows %d)", current, len(migrations()))}
	}
	return current, nil
}
