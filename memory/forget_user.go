package memory

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
)

// ForgetUser deletes all sessions of a user and what they share, expired ones included.
// It returns what it deleted. It waits while a turn of such a session is active.
func (m *Memory) ForgetUser(ctx context.Context, user string) (deleted []store.SessionHead, err error) {
	const page = 500
	for user != "" {
		heads, err := store.ListSessions(ctx, m.reader.Store, m.id, store.SessionQuery{Prefix: UserPrefix(user), Limit: page})
		if err != nil || len(heads) == 0 {
			return deleted, err
		}
		for _, l := range slices.Backward(heads) { // what sessions share comes last: a turn that ends meanwhile may write it
			if err := m.delete(ctx, store.Key{Memory: m.id, Session: l.Session}); err != nil {
				return deleted, err
			}
			deleted = append(deleted, l)
		}
	}
	return nil, nil
}

// delete deletes a stored session.
func (m *Memory) delete(ctx context.Context, key store.Key) error {
	s, err := m.sessions.Lock(ctx, key.Session)
	if err != nil {
		return m.waitError(key.Session, err)
	}
	defer m.sessions.Unlock(s)
	return m.erase(ctx, key)
}
