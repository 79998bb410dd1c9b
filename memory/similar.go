package memory

import (
	"context"

	"github.com/qtype-dev/qtype/memory/store"
)

// Comparer is a ContextSource that can compare messages with a text by their meaning.
type Comparer interface {
	// Similar returns the similarities of passages of messages of sessions with a text, at most 1,
	// for each of the heads by ranking.Place.ID. problem is why some or all are missing.
	Similar(s ContextSession, heads []store.SessionHead, text string) (all []map[int64]float32, problem string, err error)
}

// Similar compares messages of sessions with a text by their meaning, with the vectors of
// the memory's context; nil if it has none. Messages without a vector get one: the model
// is called. problem is why some are missing.
func (m *Memory) Similar(ctx context.Context, heads []store.SessionHead, text string) (all []map[int64]float32, problem string, err error) {
	c, ok := m.context.(Comparer)
	if !ok || len(heads) == 0 {
		return nil, "", nil
	}
	t := &Turn{memory: m, key: store.Key{Memory: m.id, Session: heads[0].Session}, ctx: ctx}
	return c.Similar(contextSession{t}, heads, text)
}
