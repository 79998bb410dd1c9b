// Package stepcache caches the results of steps in one SQLite file of a directory,
// for any number of processes. A Store has entries, which are bytes under a key in
// the scope of a step. NewStep puts a cache in front of a step: its entries are the
// rows that the step made of a row, in the encoding of package checkpoint.
//
// docs/cache.md describes the file's format, which is stable. The file is in WAL
// mode but not synced at every commit: a killed process loses nothing, a machine
// that loses power may lose the newest entries.
package stepcache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
)

// FileName is the name of the file in a cache's directory.
const FileName = "cache.db"

// Scope is what an entry belongs to.
type Scope struct {
	Namespace string // separates caches in one directory; usually empty
	Step      string // id of the step
	Version   string // of the step's results, as the document declares it
}

// Key identifies an entry in its scope: a SHA-256 hash.
type Key [32]byte

// Policy limits the entries of a scope.
type Policy struct {
	TTL      time.Duration // time until an entry expires; 0 means never
	MaxBytes int64         // limit for all entries of the step in the namespace, as stored; 0 means none
	Compress bool          // store with zstd
}

// Error is an error of a cache's file.
type Error struct {
	Path    string // of the file
	Message string // one line
	Err     error  // the cause
	Damaged bool   // only one entry cannot be read
}

// Error returns the path and the message.
func (e *Error) Error() string { return fmt.Sprintf("cache %s: %s", e.Path, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Store is the cache of one directory. It is safe for concurrent use, also by
// several processes.
type Store struct {
	file *sqlitefile.File[statements]
	warn func(string) // may be nil
	now  func() time.Time

	mu   sync.Mutex      // guards uses
	uses map[int64]int64 // times of last use, in milliseconds, by entry id; not written yet
}

// Open returns the cache of a directory, without touching it. Reading a cache that
// does not exist finds nothing; the first result creates the directory with mode
// 0700 and the file with mode 0600. warn, which may be nil, receives one line if
// the entries of an older format are discarded.
func Open(dir string, warn func(string)) *Store {
	s := &Store{warn: warn, now: time.Now, uses: map[int64]int64{}}
	s.file = sqlitefile.New(filepath.Join(dir, FileName), sqlitefile.Config[statements]{
		ApplicationID: applicationID,
		Migrations:    migrations(),
		Pragmas:       []string{"auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(NORMAL)"},
		Prepare:       s.prepare,
	})
	return s
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.file.Path() }

// isOlder reports whether an entry is as old as the TTL, or as far in the future: the clock was wrong
// when it was stored, or is now.
func (p Policy) isOlder(created, now time.Time) bool {
	return p.TTL > 0 && now.Sub(created).Abs() >= p.TTL
}

// Place returns the folder of the file.
func (s *Store) Place() string { return filepath.Dir(s.Path()) }

// Get returns an entry that has not expired.
func (s *Store) Get(ctx context.Context, scope Scope, key Key, p Policy) (entry []byte, found bool, err error) {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return nil, false, err
	}
	var id, created int64
	var expires sql.NullInt64
	var codec string
	err = c.Statements.find.QueryRowContext(ctx, scope.Namespace, scope.Step, scope.Version, key[:]).Scan(&id, &created, &expires, &codec, &entry)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.explain(err)
	}
	now := s.now()
	if expires.Valid && now.UnixMilli() >= expires.Int64 || p.isOlder(time.UnixMilli(created), now) {
		return nil, false, nil
	}
	if entry, err = unpack(codec, entry); err != nil {
		return nil, false, &Error{Path: s.Path(), Message: "an entry of step " + scope.Step + " is damaged", Err: err, Damaged: true}
	}
	return entry, true, s.markUsed(ctx, id, now)
}

// Put adds or replaces an entry. stored is false if it alone exceeds p.MaxBytes.
// Put evicts the least recently used entries of the step until the others fit.
func (s *Store) Put(ctx context.Context, scope Scope, key Key, entry []byte, p Policy) (stored bool, err error) {
	codec, packed, err := pack(entry, p.Compress)
	if err != nil {
		return false, &Error{Path: s.Path(), Message: "cannot compress an entry", Err: err}
	}
	if p.MaxBytes > 0 && int64(len(packed)) > p.MaxBytes {
		return false, nil
	}
	c, err := s.open(ctx, true)
	if err != nil {
		return false, err
	}
	now := s.now()
	expires := sql.NullInt64{Int64: now.Add(p.TTL).UnixMilli(), Valid: p.TTL > 0}
	err = c.Change(ctx, func(tx *sql.Tx) error {
		if err := s.writeUses(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, c.Statements.put).ExecContext(ctx, scope.Namespace, scope.Step, scope.Version, key[:],
			now.UnixMilli(), now.UnixMilli(), expires, codec, packed); err != nil {
			return err
		}
		return evict(ctx, tx, scope, p.MaxBytes)
	})
	return err == nil, s.explain(err)
}

// GetAll returns the entries of keys; nil for those that do not exist.
func (s *Store) GetAll(ctx context.Context, scope Scope, keys []Key, p Policy) ([][]byte, error) {
	entries := make([][]byte, len(keys))
	for i, key := range keys {
		entry, found, err := s.Get(ctx, scope, key, p)
		if err != nil {
			return nil, err
		}
		if found {
			entries[i] = entry
		}
	}
	return entries, nil
}

// PutAll is Put of several entries, without compression, in one transaction.
func (s *Store) PutAll(ctx context.Context, scope Scope, keys []Key, entries [][]byte, p Policy) error {
	c, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	now := s.now().UnixMilli()
	return s.explain(c.Change(ctx, func(tx *sql.Tx) error {
		if err := s.writeUses(ctx, tx); err != nil {
			return err
		}
		put := tx.StmtContext(ctx, c.Statements.put)
		for i, key := range keys {
			if _, err := put.ExecContext(ctx, scope.Namespace, scope.Step, scope.Version, key[:], now, now, sql.NullInt64{}, encodingRaw, entries[i]); err != nil {
				return err
			}
		}
		return evict(ctx, tx, scope, p.MaxBytes)
	}))
}

// Drop removes an entry, if it exists.
func (s *Store) Drop(ctx context.Context, scope Scope, key Key) error {
	c, err := s.open(ctx, false)
	if err != nil || c == nil {
		return err
	}
	return s.explain(c.Change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE namespace = ? AND step = ? AND version = ? AND key = ?",
			scope.Namespace, scope.Step, scope.Version, key[:])
		return err
	}))
}

// markUsed records the use of an entry. Uses are written together: with the next
// entry, when there are many, and by Close.
func (s *Store) markUsed(ctx context.Context, id int64, now time.Time) error {
	const maxUses = 1024
	s.mu.Lock()
	s.uses[id] = now.UnixMilli()
	flush := len(s.uses) >= maxUses
	s.mu.Unlock()
	if !flush {
		return nil
	}
	c, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	return s.explain(s.flushUses(ctx, c))
}

func (s *Store) flushUses(ctx context.Context, c *conn) error {
	s.mu.Lock()
	n := len(s.uses)
	s.mu.Unlock()
	if n == 0 {
		return nil
	}
	return c.Change(ctx, func(tx *sql.Tx) error { return s.writeUses(ctx, tx) })
}

// writeUses writes what markUsed recorded.
func (s *Store) writeUses(ctx context.Context, tx *sql.Tx) error {
	s.mu.Lock()
	uses := s.uses
	if len(uses) > 0 {
		s.uses = map[int64]int64{}
	}
	s.mu.Unlock()
	for id, at := range uses {
		if _, err := tx.ExecContext(ctx, "UPDATE entries SET used = ? WHERE id = ? AND used < ?", at, id, at); err != nil {
			return err
		}
	}
	return nil
}

// evict removes the least recently used entries of a step until the others fit.
func evict(ctx context.Context, tx *sql.Tx, scope Scope, limit int64) error {
	if limit <= 0 {
		return nil
	}
	const batch = 16 // entries per statement
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
			WHERE before < ?)`, scope.Namespace, scope.Step, batch, bytes-limit)
		if err != nil {
			return err
		}
	}
}

// Close writes the recorded uses and closes the file. The store must not be used
// afterwards.
func (s *Store) Close() error {
	return s.explain(s.file.Close(func(c *conn) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return s.flushUses(ctx, c)
	}))
}
