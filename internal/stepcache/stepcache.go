// Package cache keeps results in one SQLite file of a folder, for any number of
// processes at once. What a result means is its caller's business: an entry is
// bytes under a key, in the scope of a step.
//
// The file's form is part of the contract and told in docs/cache.md. It is in
// WAL mode and not synchronised at every commit: a killed process loses nothing,
// a machine that loses its power may lose the newest entries and no more.
package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FileName is the name of the file in a cache's folder.
const FileName = "cache.db"

// Scope is what an entry belongs to.
type Scope struct {
	Namespace string // separates caches in one folder; mostly empty
	Step      string // the step's id
	Version   string // the version that the document gives the step's results
}

// Key tells entries of one scope apart: a SHA-256.
type Key [32]byte

// Policy is how long and how much a scope keeps.
type Policy struct {
	TTL      time.Duration // how long an entry is good for; 0 means for ever
	MaxBytes int64         // what all entries of the step in the namespace may take, as stored; 0 means no limit
	Compress bool          // store with zstd
}

// Error says what is wrong with a cache's file.
type Error struct {
	Path    string // the file
	Message string // one line
	Err     error  // what lies below
}

// Error names the file.
func (e *Error) Error() string { return fmt.Sprintf("cache %s: %s", e.Path, e.Message) }

// Unwrap is what lies below.
func (e *Error) Unwrap() error { return e.Err }

// Store is the cache of one folder. It is safe for concurrent use, by processes
// too.
type Store struct {
	path string
	warn func(string) // may be nil
	now  func() time.Time

	mu     sync.Mutex // guards what follows
	files  *files     // nil until the file is needed
	closed bool

	touch   sync.Mutex      // guards touched
	touched map[int64]int64 // when entries were last used, by their ids, not yet written
}

// Open returns the cache of a folder. Nothing is touched before the first use:
// reading a cache that does not exist finds nothing, and the first entry makes
// the folder and the file, for this user alone. warn, which may be nil, is called
// with one line if the entries of an older format are discarded.
func Open(folder string, warn func(string)) *Store {
	return &Store{path: filepath.Join(folder, FileName), warn: warn, now: time.Now, touched: map[int64]int64{}}
}

// Path is the file's name.
func (s *Store) Path() string { return s.path }

// Get finds an entry that is still good.
func (s *Store) Get(ctx context.Context, scope Scope, key Key, p Policy) (entry []byte, found bool, err error) {
	f, err := s.open(ctx, false)
	if err != nil || f == nil {
		return nil, false, err
	}
	var id, created int64
	var expires sql.NullInt64
	var codec string
	err = f.find.QueryRowContext(ctx, scope.Namespace, scope.Step, scope.Version, key[:]).Scan(&id, &created, &expires, &codec, &entry)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.explain(err)
	}
	now := s.now()
	if expires.Valid && now.UnixMilli() >= expires.Int64 || p.TTL > 0 && now.Sub(time.UnixMilli(created)) >= p.TTL {
		return nil, false, nil
	}
	if entry, err = unpack(codec, entry); err != nil {
		return nil, false, &Error{Path: s.path, Message: "an entry of step " + scope.Step + " is damaged", Err: err}
	}
	return entry, true, s.markUsed(ctx, id, now)
}

// Put keeps an entry in the place of one that is there. It tells whether it was
// kept: one that is larger than all of the step's entries may be is not. What
// was not used for the longest time leaves where there is no room.
func (s *Store) Put(ctx context.Context, scope Scope, key Key, entry []byte, p Policy) (kept bool, err error) {
	codec, packed, err := pack(entry, p.Compress)
	if err != nil {
		return false, &Error{Path: s.path, Message: "an entry cannot be compressed", Err: err}
	}
	if p.MaxBytes > 0 && int64(len(packed)) > p.MaxBytes {
		return false, nil
	}
	f, err := s.open(ctx, true)
	if err != nil {
		return false, err
	}
	now := s.now()
	expires := sql.NullInt64{Int64: now.Add(p.TTL).UnixMilli(), Valid: p.TTL > 0}
	err = f.change(ctx, func(tx *sql.Tx) error {
		if err := s.writeUsage(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, f.put).ExecContext(ctx, scope.Namespace, scope.Step, scope.Version, key[:],
			now.UnixMilli(), now.UnixMilli(), expires, codec, packed); err != nil {
			return err
		}
		return evict(ctx, tx, scope, p.MaxBytes)
	})
	return err == nil, s.explain(err)
}

// Drop removes one entry, if it is there.
func (s *Store) Drop(ctx context.Context, scope Scope, key Key) error {
	f, err := s.open(ctx, false)
	if err != nil || f == nil {
		return err
	}
	return s.explain(f.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE namespace = ? AND step = ? AND version = ? AND key = ?",
			scope.Namespace, scope.Step, scope.Version, key[:])
		return err
	}))
}

// markUsed notes that an entry was used. The notes are written together: with the
// next entry, once there are many, and when the store is closed.
func (s *Store) markUsed(ctx context.Context, id int64, now time.Time) error {
	const many = 1024
	s.touch.Lock()
	s.touched[id] = now.UnixMilli()
	enough := len(s.touched) >= many
	s.touch.Unlock()
	if !enough {
		return nil
	}
	f, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	return s.explain(f.change(ctx, func(tx *sql.Tx) error { return s.writeUsage(ctx, tx) }))
}

// writeUsage writes what used has noted.
func (s *Store) writeUsage(ctx context.Context, tx *sql.Tx) error {
	s.touch.Lock()
	touched := s.touched
	if len(touched) > 0 {
		s.touched = map[int64]int64{}
	}
	s.touch.Unlock()
	for id, at := range touched {
		if _, err := tx.ExecContext(ctx, "UPDATE entries SET used = ? WHERE id = ? AND used < ?", at, id, at); err != nil {
			return err
		}
	}
	return nil
}

// evict removes the entries of a step that were not used for the longest time
// until the others fit.
func evict(ctx context.Context, tx *sql.Tx, scope Scope, limit int64) error {
	if limit <= 0 {
		return nil
	}
	const some = 16 // entries that leave at once
	for {
		var bytes int64
		if err := tx.QueryRowContext(ctx, "SELECT bytes FROM totals WHERE namespace = ? AND step = ?", scope.Namespace, scope.Step).Scan(&bytes); err != nil {
			return err
		}
		if bytes <= limit {
			return nil
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM entries WHERE id IN (
			SELECT id FROM (
				SELECT id, sum(length(value)) OVER (ORDER BY used, id) - length(value) AS before
				FROM (SELECT id, used, value FROM entries WHERE namespace = ? AND step = ? ORDER BY used, id LIMIT ?))
			WHERE before < ?)`, scope.Namespace, scope.Step, some, bytes-limit)
		if err != nil {
			return err
		}
	}
}

// Close writes what is noted and closes the file. Nothing is called after it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.files == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if len(s.touched) > 0 {
		err = s.files.change(ctx, func(tx *sql.Tx) error { return s.writeUsage(ctx, tx) })
	}
	err = errors.Join(err, s.files.close())
	s.files = nil
	return s.explain(err)
}

// open is the open file; nil where there is none and none is to be made. A
// failure is not remembered: the next call tries again.
func (s *Store) open(ctx context.Context, create bool) (*files, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.closed:
		return nil, &Error{Path: s.path, Message: "it was closed"}
	case s.files != nil:
		return s.files, nil
	}
	found, err := s.prepare(create)
	if err != nil || !found {
		return nil, s.explain(err)
	}
	var discarded int64
	if s.files, discarded, err = connect(ctx, s.path); err != nil {
		return nil, s.explain(err)
	}
	if discarded > 0 && s.warn != nil {
		s.warn(fmt.Sprintf("cache %s: discarded the results of an older version of qtype (%d); the steps compute them again", s.path, discarded))
	}
	return s.files, nil
}

// prepare finds the file, or makes it, before SQLite can: with our permissions.
func (s *Store) prepare(create bool) (found bool, err error) {
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.IsDir():
		return false, &Error{Path: s.path, Message: "it is a directory, not a file"}
	case err == nil:
		return true, nil
	case !errors.Is(err, os.ErrNotExist):
		return false, err
	case !create:
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	return true, file.Close()
}
