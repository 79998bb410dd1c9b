// Package sqlitefile opens SQLite files in WAL mode that several goroutines and
// processes share.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	busyTimeout = "5000" // milliseconds that a write waits for other processes
	// MaxReaders is the number of read connections, in addition to the one that writes.
	MaxReaders = 4
)

// Config describes a file with prepared statements of type T.
type Config[T any] struct {
	ApplicationID int32    // in SQLite's header; marks the file as ours
	Migrations    []string // see migrate
	Pragmas       []string // of the connection that writes, such as synchronous(FULL)
	PageSize      int      // bytes of a page of a new file; 0 for SQLite's default
	Replaceable   bool     // Open opens the file that is at the path now, if another one has replaced it
	Prepare       func(ctx context.Context, write, read *sql.DB) (T, error)
}

// File is a SQLite file that is opened when first used. It is safe for concurrent use.
type File[T any] struct {
	path   string
	config Config[T]

	mu     sync.Mutex  // guards what follows
	conn   *Conn[T]    // nil until first used
	opened fs.FileInfo // of the file of conn
	former *databases  // those of the file before, which operations may be using; nil for none
	closed bool
}

// Conn holds the open connections.
type Conn[T any] struct {
	databases

	Statements T
}

// databases are the pools of connections to a file.
type databases struct {
	Write, Read *sql.DB // Write has one connection
}

// ErrClosed is returned by Open after Close.
var ErrClosed = errors.New("the file is closed")

// ErrDirectory is returned by Open if the path is a directory.
var ErrDirectory = errors.New("the path is a directory, not a file")

// New returns a file, without touching it.
func New[T any](path string, config Config[T]) *File[T] {
	return &File[T]{path: path, config: config}
}

// Path returns the path as it was given.
func (f *File[T]) Path() string { return f.path }

// Open returns the connections. If the file does not exist, Open creates it with
// mode 0600, and missing parent directories with mode 0700; without create it
// returns nil. The next call tries again after an error. If another file has replaced a
// Replaceable one, Open returns the connections to that.
func (f *File[T]) Open(ctx context.Context, create bool) (*Conn[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case f.closed:
		return nil, ErrClosed
	case f.conn != nil && !f.isReplaced():
		return f.conn, nil
	case f.conn != nil:
		if err := f.leave(); err != nil {
			return nil, err
		}
	}
	found, err := prepareFile(f.path, create)
	if err != nil || !found {
		return nil, err
	}
	// Before the connections: one that is replaced between is only opened once more.
	if f.opened, err = os.Stat(f.path); err != nil {
		return nil, err
	}
	f.conn, err = f.connect(ctx)
	return f.conn, err
}

// isReplaced reports whether the open file was deleted, or another one is at its path. What is
// written to the open one would be lost.
func (f *File[T]) isReplaced() bool {
	if !f.config.Replaceable {
		return false
	}
	now, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, f.opened)
}

// leave forgets the open file. Operations may still read it, so its connections are closed with
// the next file's.
func (f *File[T]) leave() error {
	before, left := f.former, f.conn.databases
	f.former, f.conn = &left, nil
	return before.close()
}

// Close calls last, unless the file is not open or last is nil, and closes the
// connections.
func (f *File[T]) Close(last func(*Conn[T]) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	err := f.former.close()
	f.former = nil
	if f.conn == nil {
		return err
	}
	if last != nil {
		err = errors.Join(err, last(f.conn))
	}
	err = errors.Join(err, f.conn.close())
	f.conn = nil
	return err
}

// prepareFile finds or creates the file before SQLite does, to set its permissions.
func prepareFile(path string, create bool) (found bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return false, ErrDirectory
	case err == nil:
		return true, refuseLinks(path)
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case !create:
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	if err := ignoreInGit(filepath.Dir(path)); err != nil {
		return false, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	return true, errors.Join(file.Close(), refuseLinks(path))
}

// refuseLinks returns an error if a file that SQLite keeps next to the file at path is a symbolic
// link. SQLite makes none, and would write to its target.
func refuseLinks(path string) error {
	whole, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if info, err := os.Lstat(whole + suffix); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a symbolic link: remove it", whole+suffix)
		}
	}
	return nil
}

// ignoreInGit writes a .gitignore to the folder .qtype of a document, so that its
// conversations are not committed.
func ignoreInGit(folder string) error {
	if filepath.Base(folder) != ".qtype" {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(folder, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString("*\n")
	return errors.Join(err, file.Close())
}

// connect opens the connections and upgrades the tables. SQLite does not wait for
// its lock while a new file changes to WAL mode, so two processes that open one at
// the same moment conflict, and the loser tries again.
func (f *File[T]) connect(ctx context.Context) (*Conn[T], error) {
	const maxAttempts = 50
	for attempt := 1; ; attempt++ {
		c, err := f.connectOnce(ctx)
		if isDenied(err) {
			if limit := checkDescriptors(f.path); limit != nil {
				return nil, limit
			}
			return f.connectReadOnly(ctx, err)
		}
		if err == nil || !IsBusy(err) || attempt == maxAttempts {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(attempt) * time.Millisecond):
		}
	}
}

func (f *File[T]) connectOnce(ctx context.Context) (*Conn[T], error) {
	c := &Conn[T]{}
	err := f.setPageSize(ctx)
	if err != nil {
		return nil, err
	}
	if c.Write, err = sql.Open("sqlite", uri(f.path, f.config.Pragmas...)); err != nil {
		return nil, err
	}
	c.Write.SetMaxOpenConns(1)
	if c.Read, err = sql.Open("sqlite", uri(f.path, "query_only(1)")); err != nil {
		return nil, errors.Join(err, c.Write.Close())
	}
	c.Read.SetMaxOpenConns(MaxReaders)
	c.Read.SetMaxIdleConns(MaxReaders)
	if err = migrate(ctx, c.Write, f.config.ApplicationID, f.config.Migrations); err == nil {
		c.Statements, err = f.config.Prepare(ctx, c.Write, c.Read)
	}
	if err != nil {
		_ = c.close() // the first error is the cause
		return nil, err
	}
	return c, nil
}

// setPageSize writes the header of an empty file. In WAL mode, which the other
// connections set first, the size of pages cannot change.
func (f *File[T]) setPageSize(ctx context.Context) error {
	info, err := os.Stat(f.path)
	if err != nil || info.Size() > 0 || f.config.PageSize == 0 {
		return err
	}
	db, err := sql.Open("sqlite", uri(f.path, fmt.Sprintf("page_size(%d)", f.config.PageSize)))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM")
	return errors.Join(err, db.Close())
}

func (d *databases) close() error {
	if d == nil {
		return nil
	}
	return errors.Join(d.Read.Close(), d.Write.Close())
}

// uri returns the file's URI for SQLite's driver.
func uri(path string, pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(" + busyTimeout + ")"}, pragmas...)}
	name := url.URL{Path: filepath.ToSlash(path)}
	return "file:" + name.EscapedPath() + "?" + q.Encode()
}

// Change runs do in a transaction.
func (c *Conn[T]) Change(ctx context.Context, do func(*sql.Tx) error) error {
	return change(ctx, c.Write, do)
}

func change(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// errForeign reports a database that another program created.
var errForeign = errors.New("not a qtype database: another program created it")

// tooNewError reports a file with more migrations than this program has.
type tooNewError struct{ version, supported int }

func (e *tooNewError) Error() string {
	return fmt.Sprintf("written by a newer version of qtype (format %d, this version supports up to %d)", e.version, e.supported)
}

// migrate applies the missing migrations in one transaction. The file's
// user_version counts those applied, so a migration must never change.
func migrate(ctx context.Context, db *sql.DB, applicationID int32, migrations []string) error {
	current, err := version(ctx, db, applicationID, len(migrations))
	if err != nil || current == len(migrations) {
		return err
	}
	return change(ctx, db, func(tx *sql.Tx) error {
		current, err := version(ctx, tx, applicationID, len(migrations))
		if err != nil {
			return err
		}
		for _, statements := range migrations[current:] {
			if _, err := tx.ExecContext(ctx, statements); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(migrations), applicationID))
		return err
	})
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns how many migrations were applied to the file.
func version(ctx context.Context, db querier, applicationID int32, newest int) (int, error) {
	var current, tables int
	var owner int32
	row := db.QueryRowContext(ctx, "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)")
	if err := row.Scan(&current, &owner, &tables); err != nil {
		return 0, err
	}
	switch {
	case owner == 0 && current == 0 && tables == 0:
		return 0, nil
	case owner != applicationID:
		return 0, errForeign
	case current > newest:
		return 0, &tooNewError{current, newest}
	}
	return current, nil
}
