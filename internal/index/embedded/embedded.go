// Package embedded is the index in a SQLite file: vectors that are compared one by one or
// by clusters, full-text search by FTS5, and both combined. Several processes may use one
// file. docs/indexes.md describes it for users.
package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/vectors"
)

// Options describe an index.
type Options struct {
	Path        string           // of the file; it and its directories are created by the first Put
	Vectors     bool             // entries have vectors
	Dimensions  int              // length of the vectors; 0 to take that of the first one
	Encoding    vectors.Encoding // of the vectors that are scanned; those of Int8 are ranked by their exact vectors
	Approximate Approximate      // when a search compares only the vectors of some clusters
	Probes      int              // clusters that an approximate search compares; 0 for a share of them
	Fields      bool             // full-text search finds words in all fields of the metadata
	Stemming    string           // the language by whose stems full-text search compares words, auto for that of each entry; empty to compare words
	MemoryLimit int64            // bytes of vectors in memory; more are read from the file by each search
}

// Approximate is when an index has clusters.
type Approximate int

// When an index has clusters.
const (
	Auto   Approximate = iota // from autoClusters vectors on
	Never                     // all searches are exact
	Always                    // from minClusters vectors on
)

const (
	autoClusters = 200_000 // below, an exact scan takes at most about 10 ms
	minClusters  = 1_000
)

// Index is an index in a file.
type Index struct {
	opts  Options
	file  *sqlitefile.File[*statements]
	write sync.Mutex // held by Put and its clustering, so that both see the same clusters
}

var _ index.Index = (*Index)(nil)

// Open returns the index of a file, which need not exist.
func Open(opts Options) *Index {
	return &Index{opts: opts, file: newFile(opts)}
}

// conn returns the connections; nil if the file does not exist and create is not set.
func (x *Index) conn(ctx context.Context, create bool) (*conn, error) {
	c, err := x.file.Open(ctx, create)
	if err != nil {
		return nil, x.describe(ctx, err)
	}
	return c, nil
}

// describe returns an error with the path and what to do.
func (x *Index) describe(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sqlitefile.ErrClosed):
		return errors.New("the index is closed")
	case errors.Is(err, sqlitefile.ErrDirectory):
		return fmt.Errorf("%s is a directory, not a file", x.opts.Path)
	}
	var own *userError
	if errors.As(err, &own) {
		return own
	}
	_, message := sqlitefile.Diagnose(err)
	return fmt.Errorf("index file %s: %s", x.opts.Path, message)
}

// userError is an error whose text is for users.
type userError struct{ text string }

// Error returns the text.
func (e *userError) Error() string { return e.text }

func userErrorf(format string, args ...any) error { return &userError{fmt.Sprintf(format, args...)} }

// Stats counts the entries.
func (x *Index) Stats(ctx context.Context) (index.Stats, error) {
	var s index.Stats
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return s, err
	}
	var clusters int64
	err = c.Read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM entries), (SELECT count(DISTINCT document) FROM entries WHERE document <> ''),
		(SELECT dimensions FROM state), (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size), (SELECT count(*) FROM clusters)`).
		Scan(&s.Entries, &s.Documents, &s.Dimensions, &s.Bytes, &clusters)
	if clusters > 0 {
		s.Detail = fmt.Sprintf("%d clusters", clusters)
	}
	return s, x.describe(ctx, err)
}

// Clear removes all entries and settings; the file stays, because other processes may
// have opened it.
func (x *Index) Clear(ctx context.Context) error {
	x.write.Lock()
	defer x.write.Unlock()
	c, err := x.conn(ctx, false)
	if c == nil || err != nil {
		return err
	}
	if err := c.Change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, clearStatements)
		return err
	}); err != nil {
		return x.describe(ctx, err)
	}
	_, _ = c.Write.ExecContext(ctx, "VACUUM") // another process may prevent it; the space is used again
	return nil
}

// Close closes the file.
func (x *Index) Close() error {
	return x.file.Close(func(c *conn) error { return nil })
}
