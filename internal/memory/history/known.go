package history

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/memory/store"
)

// KnownIDs returns which of the ids belong to messages of the session that did
// not fail, with their positions; nil for none.
func (r *Reader) KnownIDs(ctx context.Context, key store.Key, ids []string) (map[string]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var found foundIDs // one allocation, while a range makes one for each variable
	r.Store.Entries(ctx, key, store.Query{Live: true, IDs: ids})(found.add)
	if found.err != nil {
		return nil, found.err
	}
	return found.known, nil
}

// foundIDs are the positions of messages by their ids.
type foundIDs struct {
	known map[string]int64
	err   error
}

// add adds one message, until there is an error.
func (f *foundIDs) add(e *store.Entry, err error) bool {
	if err != nil {
		f.err = err
		return false
	}
	if f.known == nil {
		f.known = map[string]int64{}
	}
	f.known[e.Message.ID] = e.Seq
	return true
}

// WithoutKnown returns the entries that the session does not have yet. A message
// that was rewound gets another id, always the same one, so that it can be added
// once more; ids has the new ids by the old ones.
func (r *Reader) WithoutKnown(ctx context.Context, key store.Key, s store.State, entries []*store.Entry) (rest []*store.Entry, ids map[string]string, err error) {
	_, hidden, err := s.Ranges()
	if err != nil {
		return nil, nil, err
	}
	for renamed := true; renamed; entries = rest {
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Message.ID
		}
		known, err := r.KnownIDs(ctx, key, names)
		if err != nil {
			return nil, nil, err
		}
		if len(known) == 0 {
			return entries, ids, nil
		}
		renamed, rest = false, nil // a store may have the slice of an earlier attempt
		for _, e := range entries {
			seq := known[e.Message.ID]
			switch {
			case seq == 0:
			case hidden.Has(seq):
				c := *e
				c.Message.ID = fmt.Sprintf("%s~%d", e.Message.ID, seq)
				if ids == nil {
					ids = map[string]string{}
				}
				ids[e.Message.ID] = c.Message.ID
				e, renamed = &c, true
			default:
				continue
			}
			rest = append(rest, e)
		}
	}
	return rest, ids, nil
}
