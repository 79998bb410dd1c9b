package remote

import (
	"errors"
	"fmt"

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

// CheckQuery reports a vector of another length.
func CheckQuery(q index.Query, dimensions int) error {
	if q.Mode != index.ByText && len(q.Vector) != dimensions {
		return fmt.Errorf("the vector of the query has %d numbers instead of %d", len(q.Vector), dimensions)
	}
	return nil
}
