// Package sqlite stores memories in one SQLite file: durable, embedded, and safe
// for concurrent processes. The file is in WAL mode and synced at every commit,
// so a crash of the process or the machine loses no acknowledged write.
// Concurrent writes share commits.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/storage"
)

const (
	busyTimeout = "5000" // milliseconds that a write waits for other processes
	maxReaders  = 4      // read connections, in addition to the one that writes
)

// Store is a memory.Store in one file. It is safe for concurrent use.
type Store struct {
	path     string
	location storage.Location // path, for errors

	mu     sync.Mutex // guards what follows
	files  *files     // nil until first used
	closed bool

	queue   sync.Mutex // guards pending
	pending []*request
	writing chan struct{} // holds a token during a write
}

// files holds the open connections and their prepared statements.
type files struct {
	write, read *sql.DB
	writes      writes
	reads       reads
}

// Open returns a store for a file, without touching it. Reading a file that does
// not exist finds nothing; the first write creates it with mode 0600, and missing
// parent directories with mode 0700.
func Open(path string) (*Store, error) {
	if path == "" {
		return nil, storage.Location(`""`).Unavailable("the path is empty")
	}
	return &Store{path: path, location: storage.Location(path), writing: make(chan struct{}, 1)}, nil
}

// Location returns the path as it was given.
func (s *Store) Location() string { return s.path }

// Close closes the file. The store must not be used afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.files == nil {
		return nil
	}
	err := s.files.close()
	s.files = nil
	return s.explain(err)
}

func (f *files) close() error {
	return errors.Join(f.read.Close(), f.write.Close())
}

// open returns the open file. If it does not exist, open creates it or, without
// create, returns nil. The next call tries again after an error.
func (s *Store) open(ctx context.Context, create bool) (*files, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.closed:
		return nil, s.location.Closed()
	case s.files != nil:
		return s.files, nil
	}
	if found, err := s.prepareFile(create); err != nil || !found {
		return nil, err
	}
	f, err := s.connect(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	s.files = f
	return f, nil
}

// prepareFile finds or creates the file before SQLite does, to set its permissions.
func (s *Store) prepareFile(create bool) (found bool, err error) {
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.IsDir():
		return false, s.location.Unavailable("the path is a directory, not a file")
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, s.explain(err)
	case !create:
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return false, s.explain(err)
	}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, s.explain(err)
	}
	return true, file.Close()
}

// connect opens the connections and upgrades the tables. SQLite does not wait
// for its lock while a new file changes to WAL mode, so two processes that open
// one at the same moment conflict, and the loser tries again.
func (s *Store) connect(ctx context.Context) (*files, error) {
	const attempts = 50
	for attempt := 1; ; attempt++ {
		f, err := s.connectOnce(ctx)
		if err == nil || !isBusy(err) || attempt == attempts {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(attempt) * time.Millisecond):
		}
	}
}

func (s *Store) connectOnce(ctx context.Context) (*files, error) {
	f := &files{}
	var err error
	if f.write, err = sql.Open("sqlite", s.address("journal_mode(WAL)", "synchronous(FULL)")); err != nil {
		return nil, err
	}
	f.write.SetMaxOpenConns(1)
	if f.read, err = sql.Open("sqlite", s.address("query_only(1)")); err != nil {
		return nil, errors.Join(err, f.write.Close())
	}
	f.read.SetMaxOpenConns(maxReaders)
	f.read.SetMaxIdleConns(maxReaders)
	if err = migrate(ctx, f.write, s.location); err == nil {
		if err = f.writes.prepare(ctx, f.write); err == nil {
			err = f.reads.prepare(ctx, f.read)
		}
	}
	if err != nil {
		_ = f.close() // the first error is the cause
		return nil, err
	}
	return f, nil
}

// address returns the file's URI for SQLite's driver.
func (s *Store) address(pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(" + busyTimeout + ")"}, pragmas...)}
	name := url.URL{Path: filepath.ToSlash(s.path)}
	return "file:" + name.EscapedPath() + "?" + q.Encode()
}
