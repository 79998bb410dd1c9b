// Package index is the interface of indexes, which VectorIndex and DocumentIndex of a
// document name. Each store is a subpackage; package indextest is the contract suite
// that all of them pass.
package index

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/qtype-dev/qtype/internal/filter"
)

// Entry is one chunk or document of an index. Its values must not be changed after it
// was passed to an Index or returned by one.
type Entry struct {
	ID       string         // unique in the index
	Document string         // id of the document that it came from; empty for none
	Text     string         // the text that is searched and shown
	Vector   []float32      // of the text; nil in an index without vectors
	Model    string         // what made the vector, see model.Info.Identity; empty for unknown. Searches do not return it
	Metadata map[string]any // JSON values; the fields of the document in a full-text index
	Hash     string         // of what was indexed, see Hash; empty for unknown
}

// Mode is how a query finds entries.
type Mode int

// The modes.
const (
	ByVector Mode = iota // the nearest vectors
	ByText               // full-text search
	Hybrid               // both, combined by reciprocal rank fusion
)

// Query is one search.
type Query struct {
	Mode      Mode           // how to search
	Text      string         // the text, for ByText and Hybrid
	Vector    []float32      // its vector, for ByVector and Hybrid
	Model     string         // what made the vector, see model.Info.Identity; empty for unknown
	Limit     int            // maximum number of matches, at least 1
	Filter    filter.Filter  // what the metadata must satisfy; nil for no condition
	Args      map[string]any // settings of the query that a store declares
	Highlight bool           // return the places of the text that match
}

// Match is a found entry.
type Match struct {
	Entry
	Score      float64  // greater is better; comparable only within the matches of one query
	Highlights []string // passages of the text, with matching words between ** and **
}

// Page selects entries of a listing.
type Page struct {
	After  string        // entries whose id is greater; empty to begin
	Limit  int           // 0 for all
	Filter filter.Filter // nil for all
}

// Stats describes an index.
type Stats struct {
	Entries    int64  // number of entries
	Documents  int64  // number of documents that they came from; -1 where the store cannot count them
	Dimensions int    // length of the vectors; 0 without vectors
	Bytes      int64  // size in the store; -1 where it is unknown
	Detail     string // what the store adds, for people
}

// Index is a collection of entries in a store. Implementations are safe for concurrent
// use. An index that does not exist is empty: the first Put creates it.
type Index interface {
	// Put inserts entries, or replaces those with the same ids. When it returns nil, all
	// entries are durable and visible to searches. The error is a *PutError if only some
	// of them were rejected.
	Put(ctx context.Context, entries []Entry) error
	// Delete removes entries; unknown ids are ignored.
	Delete(ctx context.Context, ids []string) error
	// Search returns the best matches, the best first. Entries with equal scores are
	// ordered by id. A text of any characters is a valid query.
	Search(ctx context.Context, q Query) ([]Match, error)
	// Entries lists entries in the order of their ids, without vectors.
	Entries(ctx context.Context, p Page) iter.Seq2[Entry, error]
	// Hashes returns the hashes of the entries that exist.
	Hashes(ctx context.Context, ids []string) (map[string]string, error)
	// Stats describes the index.
	Stats(ctx context.Context) (Stats, error)
	// Clear removes the index with all its entries.
	Clear(ctx context.Context) error
	// Close releases connections and files.
	Close() error
}

// Checker is an index that finds errors of a search before its vector is known, which costs a call
// of a model: an unreadable store, or vectors of another model.
type Checker interface {
	// Check returns the error that Search would return for a query, if it does not depend on the vector.
	Check(ctx context.Context, q Query) error
}

// Check checks a query whose vector is not known yet, if the index is a Checker.
func Check(ctx context.Context, x Index, q Query) error {
	if c, ok := x.(Checker); ok {
		return c.Check(ctx, q)
	}
	return nil
}

// Find searches with a vector of a model. Matches with vectors of another model are an error: they may be equally
// long, and cannot be compared. Entries that earlier versions have written have no model.
func Find(ctx context.Context, x Index, q Query) ([]Match, error) {
	matches, err := x.Search(ctx, q)
	if err != nil || q.Mode == ByText || q.Model == "" {
		return matches, err
	}
	for i := range matches {
		if model := modelOf(matches[i].Hash); model != "" && model != q.Model {
			return nil, &OtherModelError{Stored: model, Searched: q.Model}
		}
	}
	return matches, nil
}

// OtherModelError reports a search with another model than the one that made the vectors of
// the index.
type OtherModelError struct{ Stored, Searched string }

// Error names both models and what to do.
func (e *OtherModelError) Error() string {
	return fmt.Sprintf("the index has vectors of the embedding model %s, which cannot be compared with those of %s: ingest again, with sync: true if documents were removed, or clear the index first", e.Stored, e.Searched)
}

// PutError reports the entries that a store rejected; the others are stored.
type PutError struct {
	Rejected map[string]error // by id
}

// Error names some of the entries.
func (e *PutError) Error() string {
	var some []string
	for id, err := range e.Rejected {
		some = append(some, fmt.Sprintf("%s: %v", id, err))
		if len(some) == 3 {
			break
		}
	}
	return fmt.Sprintf("%d entries were rejected: %s", len(e.Rejected), strings.Join(some, "; "))
}
