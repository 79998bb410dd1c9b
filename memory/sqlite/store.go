// Package sqlite keeps memories in one SQLite file: durable, embedded, and safe
// for several processes at once. The file is in WAL mode and synchronised in
// full at every commit, so a killed process or machine loses nothing that was
// acknowledged. Writes that come together share one commit.
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

	"github.com/qtype-dev/qtype/memory"
)

const (
	busyTimeout = "5000" // milliseconds that a write waits for another process
	readers     = 4      // connections that read beside the one that writes
)

// Store is a memory.Store in one file. It is safe for concurrent use.
type Store struct {
	path string

	mu     sync.Mutex // guards what follows
	files  *files     // nil until the file is needed
	closed bool

	queue   sync.Mutex // guards pending
	pending []*request
	writing chan struct{} // holds a token while somebody writes
}

// files are the open connections and what was prepared on them.
type files struct {
	write, read *sql.DB
	writes      writes
	reads       reads
}

// Open names the store's file. Nothing is touched before the first use: reading
// a file that does not exist finds nothing, and the first write makes the file,
// for this user alone (0600), and its folder (0700).
func Open(path string) (*Store, error) {
	if path == "" {
		return nil, &memory.StoreError{Place: `""`, Problem: memory.Unavailable, Message: "the file needs a name"}
	}
	return &Store{path: path, writing: make(chan struct{}, 1)}, nil
}

// Path is the file's name as it was given.
func (s *Store) Path() string { return s.path }

// Close closes the file. Nothing is called after it.
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

// open is the open file. Where it does not exist it is made if make is set, else
// the result is nil. A failure is not remembered: the next call tries again.
func (s *Store) open(ctx context.Context, create bool) (*files, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.closed:
		return nil, &memory.StoreError{Place: s.path, Problem: memory.Unavailable, Message: "it was closed"}
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

// prepareFile finds the file, or makes it, before SQLite can: with our permissions.
func (s *Store) prepareFile(create bool) (found bool, err error) {
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.IsDir():
		return false, &memory.StoreError{Place: s.path, Problem: memory.Unavailable, Message: "it is a directory, not a file"}
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

// connect opens the connections and brings the tables up to date. Two processes
// that open a new file in the same moment get in each other's way while it
// changes to WAL, where SQLite does not wait: the loser tries again.
func (s *Store) connect(ctx context.Context) (*files, error) {
	const attempts = 50
	for attempt := 1; ; attempt++ {
		f, err := s.connectOnce(ctx)
		if err == nil || !busy(err) || attempt == attempts {
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
	f.read.SetMaxOpenConns(readers)
	f.read.SetMaxIdleConns(readers)
	if err = migrate(ctx, f.write, s.path); err == nil {
		if err = f.writes.prepare(ctx, f.write); err == nil {
			err = f.reads.prepare(ctx, f.read)
		}
	}
	if err != nil {
		_ = f.close() // the first error says more
		return nil, err
	}
	return f, nil
}

// address is the file as SQLite's driver wants it, whatever is in its name.
func (s *Store) address(pragmas ...string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(" + busyTimeout + ")"}, pragmas...)}
	name := url.URL{Path: filepath.ToSlash(s.path)}
	return "file:" + name.EscapedPath() + "?" + q.Encode()
}
