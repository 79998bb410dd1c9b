package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

const (
	application = 0x71747963 // "qtyc" in SQLite's header marks the file as ours
	format      = 2          // the file's user_version
	busyTimeout = "5000"     // milliseconds that a write waits for another process
	readers     = 4          // connections that read beside the one that writes
)

// tables is the file's form. Triggers keep the totals, whoever writes.
const tables = `
CREATE TABLE entries (
	id        INTEGER PRIMARY KEY,
	namespace TEXT NOT NULL,
	step      TEXT NOT NULL,
	version   TEXT NOT NULL,
	key       BLOB NOT NULL,    -- SHA-256
	created   INTEGER NOT NULL, -- milliseconds since 1970, as are the next two
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
`

const (
	findEntry = `SELECT id, created, expires, codec, value FROM entries WHERE namespace = ? AND step = ? AND version = ? AND key = ?`
	putEntry  = `INSERT INTO entries (namespace, step, version, key, created, used, expires, codec, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (namespace, step, version, key) DO UPDATE SET created = excluded.created, used = excluded.used,
		expires = excluded.expires, codec = excluded.codec, value = excluded.value`
)

// files are the open connections and what was prepared on them.
type files struct {
	write, read *sql.DB
	find, put   *sql.Stmt
}

// connect opens the connections and makes the tables. Two processes that open a
// new file in the same moment get in each other's way while it changes to WAL,
// where SQLite does not wait: the loser tries again.
func connect(ctx context.Context, path string) (f *files, discarded int64, err error) {
	const attempts = 50
	for attempt := 1; ; attempt++ {
		f, discarded, err = connectOnce(ctx, path)
		if err == nil || !busy(err) || attempt == attempts {
			return f, discarded, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(time.Duration(attempt) * time.Millisecond):
		}
	}
}

func connectOnce(ctx context.Context, path string) (f *files, discarded int64, err error) {
	f = &files{}
	if f.write, err = sql.Open("sqlite", address(path, "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(NORMAL)")); err != nil {
		return nil, 0, err
	}
	f.write.SetMaxOpenConns(1)
	if f.read, err = sql.Open("sqlite", address(path, "query_only(1)")); err != nil {
		return nil, 0, errors.Join(err, f.write.Close())
	}
	f.read.SetMaxOpenConns(readers)
	f.read.SetMaxIdleConns(readers)
	if discarded, err = f.migrate(ctx); err == nil {
		if f.put, err = f.write.PrepareContext(ctx, putEntry); err == nil {
			f.find, err = f.read.PrepareContext(ctx, findEntry)
		}
	}
	if err != nil {
		_ = f.close() // the first error matters
		return nil, 0, err
	}
	return f, discarded, nil
}

func (f *files) close() error { return errors.Join(f.read.Close(), f.write.Close()) }

// address is the file as SQLite's driver wants it, whatever is in its name.
func address(path string, pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(" + busyTimeout + ")"}, pragmas...)}
	name := url.URL{Path: filepath.ToSlash(path)}
	return "file:" + name.EscapedPath() + "?" + q.Encode()
}

// change runs do in one transaction.
func (f *files) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := f.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// migrate makes the tables of a new file, and replaces those of an older format.
// It returns the number of entries that were discarded.
func (f *files) migrate(ctx context.Context) (discarded int64, err error) {
	err = f.change(ctx, func(tx *sql.Tx) error {
		discarded = 0
		var version, owner, tablesThere int
		err := tx.QueryRowContext(ctx, "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version, pragma_application_id").
			Scan(&version, &owner, &tablesThere)
		switch {
		case err != nil:
			return err
		case owner == application && version == format:
			return nil
		case owner == application && version > format:
			return fmt.Errorf("it was made by a newer qtype: its format is %d, this one reads %d", version, format)
		case owner == application:
			if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM entries").Scan(&discarded); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DROP TABLE entries; DROP TABLE totals"); err != nil {
				return err
			}
		case owner != 0 || tablesThere > 0:
			return errors.New("it is a database of another program")
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("%s PRAGMA user_version = %d; PRAGMA application_id = %d;", tables, format, application))
		return err
	})
	return discarded, err
}

// explain makes one clear line of what SQLite or the system says.
func (s *Store) explain(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Path: s.path, Message: diagnose(err), Err: err}
}

func diagnose(err error) string {
	var fault *driver.Error
	if errors.As(err, &fault) {
		return diagnoseSQLite(fault)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "no permission to open or make it"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return "a part of its folder's name is a file"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "no room is left on the disk"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	}
	return oneLine(err)
}

func diagnoseSQLite(fault *driver.Error) string {
	switch fault.Code() & 0xff { // the primary result code
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return "another program keeps it locked"
	case lib.SQLITE_FULL:
		return "no room is left on the disk"
	case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
		return "it is damaged, or no SQLite database; remove it to begin anew"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return "no permission to write it"
	case lib.SQLITE_CANTOPEN:
		return "it cannot be opened: is its folder there, and writable?"
	}
	return oneLine(fault)
}

func busy(err error) bool {
	var fault *driver.Error
	return errors.As(err, &fault) && fault.Code()&0xff == lib.SQLITE_BUSY
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
