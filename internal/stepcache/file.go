package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// applicationID marks the file as ours in SQLite's header: "qtyc".
const applicationID = 0x71747963

// migrations returns the statements that upgrade the tables by one version each.
// Never change one: append another. Triggers maintain the totals. The second one
// discards the entries, which were JSON; discarded has their number until it is
// reported.
func migrations() []string {
	return []string{`
CREATE TABLE entries (
	id        INTEGER PRIMARY KEY,
	namespace TEXT NOT NULL,
	step      TEXT NOT NULL,
	version   TEXT NOT NULL,
	key       BLOB NOT NULL,    -- SHA-256
	created   INTEGER NOT NULL, -- milliseconds since 1970, as used and expires
	used      INTEGER NOT NULL,
	expires   INTEGER,          -- NULL: never
	codec     TEXT NOT NULL,    -- raw or zstd
	value     BLOB NOT NULL,
	UNIQUE (namespace, step, version, key)
);
CREATE INDEX entries_by_use ON entries (namespace, step, used, id);
CREATE TABLE totals (
	namespace TEXT NOT NULL,
	step      TEXT NOT NULL,
	entries   INTEGER NOT NULL,
	bytes     INTEGER NOT NULL,
	PRIMARY KEY (namespace, step)
) WITHOUT ROWID;
CREATE TRIGGER entry_comes AFTER INSERT ON entries BEGIN
	INSERT INTO totals VALUES (NEW.namespace, NEW.step, 1, length(NEW.value))
	ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + length(NEW.value);
END;
CREATE TRIGGER entry_changes AFTER UPDATE OF value ON entries BEGIN
	UPDATE totals SET bytes = bytes + length(NEW.value) - length(OLD.value) WHERE namespace = NEW.namespace AND step = NEW.step;
END;
CREATE TRIGGER entry_leaves AFTER DELETE ON entries BEGIN
	UPDATE totals SET entries = entries - 1, bytes = bytes - length(OLD.value) WHERE namespace = OLD.namespace AND step = OLD.step;
END;
`, `
CREATE TABLE discarded AS SELECT count(*) AS entries FROM entries;
DELETE FROM entries;
DELETE FROM totals;
`}
}

const (
	findEntry = `SELECT id, created, expires, codec, value FROM entries WHERE namespace = ? AND step = ? AND version = ? AND key = ?`
	putEntry  = `INSERT INTO entries (namespace, step, version, key, created, used, expires, codec, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (namespace, step, version, key) DO UPDATE SET created = excluded.created, used = excluded.used,
		expires = excluded.expires, codec = excluded.codec, value = excluded.value`
)

// conn is the open file.
type conn = sqlitefile.Conn[statements]

// statements holds the prepared statements.
type statements struct {
	find, put *sql.Stmt
}

func prepareStatements(ctx context.Context, write, read *sql.DB) (s statements, err error) {
	if s.put, err = write.PrepareContext(ctx, putEntry); err == nil {
		s.find, err = read.PrepareContext(ctx, findEntry)
	}
	return s, err
}

// prepare prepares the statements, and reports entries of an older format that were
// discarded.
func (s *Store) prepare(ctx context.Context, write, read *sql.DB) (statements, error) {
	var discarded int64
	if err := read.QueryRowContext(ctx, "SELECT coalesce(sum(entries), 0) FROM discarded").Scan(&discarded); err != nil {
		return statements{}, err
	}
	if discarded > 0 {
		done, err := write.ExecContext(ctx, "DELETE FROM discarded")
		if err != nil {
			return statements{}, err
		}
		if n, err := done.RowsAffected(); err == nil && n > 0 && s.warn != nil { // else another process reports it
			s.warn(fmt.Sprintf("cache %s: discarded the results of an older version of qtype (%d); the steps compute them again", s.Path(), discarded))
		}
	}
	return prepareStatements(ctx, write, read)
}

// open returns the open file, nil if it does not exist and create is not set.
func (s *Store) open(ctx context.Context, create bool) (*conn, error) {
	c, err := s.file.Open(ctx, create)
	return c, s.explain(err)
}

// explain converts an error of SQLite or the system to an *Error.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var explained *Error
	if errors.As(err, &explained) {
		return err
	}
	kind, message := sqlitefile.Diagnose(err)
	if kind == sqlitefile.Damaged {
		message += "; remove the file to start over"
	}
	return &Error{Path: s.Path(), Message: message, Err: err}
}
