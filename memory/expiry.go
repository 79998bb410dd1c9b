package memory

import (
	"context"
	"errors"
)

// Prune deletes the sessions whose ttl is over and returns their number. A
// memory without a ttl has none. Expired sessions that are not pruned are
// deleted when they are used next; until then reads do not return them.
func (m *Memory) Prune(ctx context.Context) (int, error) {
	if m.context != nil {
		if err := m.context.Prune(ctx, m.store, m.id); err != nil {
			return 0, err
		}
	}
	if m.ttl == 0 {
		return 0, nil
	}
	var expired []SessionHead
	for l, err := range m.store.Sessions(ctx, m.id) {
		if err != nil {
			return 0, err
		}
		if m.expired(l.Head.State) {
			expired = append(expired, l)
		}
	}
	n := 0
	for _, l := range expired {
		deleted, err := m.prune(ctx, l)
		if err != nil {
			return n, err
		}
		if deleted {
			n++
		}
	}
	return n, nil
}

// prune deletes a session unless it has changed, and reports whether it did.
func (m *Memory) prune(ctx context.Context, l SessionHead) (bool, error) {
	s, err := m.lock(ctx, l.Session)
	if err != nil {
		return false, err
	}
	defer m.sessions.unlock(s)
	err = m.remove(ctx, m.key(l.Session), l.Head.Version)
	if errors.Is(err, ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
