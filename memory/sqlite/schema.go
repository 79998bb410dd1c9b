package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory"
)

// applicationID marks the file as ours in SQLite's header: "qtyp".
const applicationID = 0x71747970

// seqBits is how many low bits of an entry's primary key hold its Seq; the bits
// above hold the session's id. A session's history is thus one range of the
// table, in order, without an index: 2^36 messages in each of 2^27 sessions.
const seqBits = 36

// migrations returns the statements that upgrade the tables by one version each;
// the file's user_version counts those applied. Never change one: append another.
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
	message    TEXT NOT NULL -- JSON
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

// migrate upgrades the file's tables in one transaction.
func migrate(ctx context.Context, db *sql.DB, location storage.Location) error {
	current, err := version(ctx, db, location)
	all := migrations()
	if err != nil || current == len(all) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if current, err = version(ctx, tx, location); err != nil {
		return err
	}
	for _, statements := range all[current:] {
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return err
		}
	}
	header := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(all), applicationID)
	if _, err := tx.ExecContext(ctx, header); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns how many migrations were applied to the file.
func version(ctx context.Context, db querier, location storage.Location) (int, error) {
	var current, owner, tables int
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)")
	if err := row.Scan(&current, &owner, &tables); err != nil {
		return 0, err
	}
	switch {
	case owner == 0 && current == 0 && tables == 0:
		return 0, nil
	case owner != applicationID:
		return 0, location.Error(memory.Corrupt, "not a qtype database: another program created it", nil)
	case current > len(migrations()):
		return 0, location.Error(memory.TooNew, fmt.Sprintf("written by a newer version of qtype (format %d, this version supports up to %d)", current, len(migrations())), nil)
	}
	return current, nil
}
