package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/index"
)

// Rejected collects the entries that are not stored, with the reasons.
type Rejected map[string]error

// Err returns a *index.PutError; nil if there are none.
func (r Rejected) Err() error {
	if len(r) == 0 {
		return nil
	}
	return &index.PutError{Rejected: r}
}

var errNoVector = errors.New("it has no vector: embed it first, for example with DocumentEmbedder")

// CheckVectors returns the entries whose vectors have this length, and the others.
func CheckVectors(entries []index.Entry, dimensions int) ([]index.Entry, Rejected) {
	rejected := Rejected{}
	kept := make([]index.Entry, 0, len(entries))
	for _, e := range entries {
		switch {
		case len(e.Vector) == 0:
			rejected[e.ID] = errNoVector
		case len(e.Vector) != dimensions:
			rejected[e.ID] = fmt.Errorf("its vector has %d numbers instead of %d", len(e.Vector), dimensions)
		default:
			kept = append(kept, e)
		}
	}
	return kept, rejected
}

// Writes are the writes of a store whose entries have vectors. C is what the store knows of a
// collection.
type Writes[C any] struct {
	Dimensions int                                                      // length of the vectors
	BatchSize  int                                                      // largest number of entries of a write
	Create     func(context.Context) (*C, error)                        // returns the collection, which it creates if there is none
	Write      func(context.Context, *C, []index.Entry, Rejected) error // writes entries, and adds those that cannot be stored
}

// Put stores entries in batches, of those with equal ids the last one. It returns a
// *index.PutError for entries that are not stored.
func (w Writes[C]) Put(ctx context.Context, entries []index.Entry) error {
	entries, rejected := CheckVectors(Last(entries), w.Dimensions)
	if len(entries) > 0 {
		c, err := w.Create(ctx)
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(entries, max(1, w.BatchSize)) {
			if err := w.Write(ctx, c, batch, rejected); err != nil {
				return err
			}
		}
	}
	return rejected.Err()
}

// CheckQuery reports a vector of another length.
func CheckQuery(q index.Query, dimensions int) error {
	if q.Mode != index.ByText && len(q.Vector) != dimensions {
		return fmt.Errorf("the vector of the query has %d numbers instead of %d", len(q.Vector), dimensions)
	}
	return nil
}

// UUIDs returns the ids of objects in stores whose ids are UUIDs.
func UUIDs(ids []string) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = UUID(id)
	}
	return all
}

// CheckVectorQuery is CheckQuery for a store that searches by vector only.
func CheckVectorQuery(store string, q index.Query, dimensions int) error {
	if q.Mode != index.ByVector {
		return fmt.Errorf("the store %s searches by vector only; use the store embedded, pgvector or opensearch for text", store)
	}
	return CheckQuery(q, dimensions)
}
