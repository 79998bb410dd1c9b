package memory

import (
	"context"

	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/memory/store"
)

// Words returns the stored index of the words of a session; an empty one if there is none. It belongs to the
// stored session, not to an expired one.
func (m *Memory) Words(ctx context.Context, l store.SessionHead) (*segments.Index, error) {
	return segments.Open(ctx, m.reader.Store, store.Key{Memory: m.id, Session: l.Session}, l.Head)
}

// StoreWords stores an index of the words of messages that have none, if they are thousands, so that other processes need not read
// them for a search.
func (m *Memory) StoreWords(ctx context.Context, session string) error {
	_, err := segments.Extend(ctx, m.reader.Store, m.key(session), m.moment())
	return err
}

// forgetWords deletes the stored index of the words of a session with messages up to last.
func (m *Memory) forgetWords(ctx context.Context, key store.Key, last int64) error {
	if last < segments.MinMessages {
		return nil
	}
	return segments.Delete(ctx, m.reader.Store, key)
}
