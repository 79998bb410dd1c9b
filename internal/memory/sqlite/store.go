// Package sqlite stores memories in one SQLite file: durable, embedded, and safe
// for concurrent processes. The file is in WAL mode and synced at every commit,
// so a crash of the process or the machine loses no acknowledged write.
// Concurrent writes share commits.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/memory/store"
)

// Store is a store.Store in one file. It is safe for concurrent use.
type Store struct {
	location storage.Location // the path
	file     *sqlitefile.File[statements]

	queue   sync.Mutex // guards pending
	pending []*request
	writing chan struct{} // holds a token during a write
}

// conn is the open file.
type conn = sqlitefile.Conn[statements]

// statements holds the prepared statements.
type statements struct {
	writes
	reads
}

// checkpointPages is the number of pages of 4 KiB in the write-ahead log at which they are
// copied into the file. Turns write the same pages again and again: with SQLite's 1,000,
// a third more bytes are written.
const checkpointPages = "4000"

// Open returns a store for a file, without touching it. Reading a file that does
// not exist finds nothing; the first write creates it with mode 0600, and missing
// parent directories with mode 0700.
func Open(path string) (*Store, error) {
	if path == "" {
		return nil, storage.Location(`""`).Unavailable("the path is empty")
	}
	file := sqlitefile.New(path, sqlitefile.Config[statements]{
		ApplicationID: applicationID,
		Migrations:    migrations(),
		Pragmas:       []string{"journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(" + checkpointPages + ")"},
		Prepare: func(ctx context.Context, write, read *sql.DB) (s statements, err error) {
			err = errors.Join(s.writes.prepare(ctx, write), s.reads.prepare(ctx, read))
			return s, err
		},
	})
	return &Store{location: storage.Location(path), file: file, writing: make(chan struct{}, 1)}, nil
}

// Location returns the path as it was given.
func (s *Store) Location() string { return string(s.location) }

// Close closes the file. The store must not be used afterwards. If a process was killed while
// it deleted a session, Close ends that first.
func (s *Store) Close() error { return s.explain(s.file.Close(endDeletions)) }

// endDeletions deletes hidden sessions. It reports no errors: the file may be read-only or
// damaged, and the next process tries it again.
func endDeletions(c *conn) error {
	ctx := context.Background()
	for {
		var id int64
		if err := c.Statements.hidden.QueryRowContext(ctx).Scan(&id); err != nil {
			return nil //nolint:nilerr // there is none, mostly
		}
		if err := c.Change(ctx, func(tx *sql.Tx) error { return deleteHidden(ctx, tx) }); err != nil {
			return nil //nolint:nilerr // see above
		}
	}
}

// open returns the open file, nil if it does not exist and create is not set.
func (s *Store) open(ctx context.Context, create bool) (*conn, error) {
	c, err := s.file.Open(ctx, create)
	return c, s.explain(err)
}

// explain converts an error of SQLite or the system to a *store.Error.
func (s *Store) explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.location.Explain(context.Background(), err, diagnose)
}

func diagnose(err error) (store.ErrorKind, string) {
	kind, message := sqlitefile.Diagnose(err)
	switch kind {
	case sqlitefile.Locked:
		return store.Locked, message
	case sqlitefile.Full:
		return store.Full, message
	case sqlitefile.Denied:
		return store.Denied, message
	case sqlitefile.Damaged, sqlitefile.Foreign:
		return store.Corrupt, message
	case sqlitefile.TooNew:
		return store.TooNew, message
	}
	return store.Unavailable, message
}
