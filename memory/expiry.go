package memory

import (
	"context"
	"errors"
)

// A session that nobody wrote to for the ttl is over: it is deleted, window and
// history, when it is used next, and by Prune. Until then reads do not see it.

// expired tells whether a session's ttl is over. Who reads it does not touch it.
func (m *Memory) expired(s State) bool {
	return m.ttl > 0 && !s.LastSaid.IsZero() && m.now().Sub(s.LastSaid) > m.ttl
}

// expireIfDue is v, or an empty view once the session was deleted because its ttl
// is over. The caller holds the session's lane.
func (m *Memory) expireIfDue(ctx context.Context, key Key, v *view) (*view, error) {
	for range maxAttempts {
		if !m.expired(v.state) {
			return v, nil
		}
		err := m.remove(ctx, key, v.version)
		if err == nil {
			return m.emptyView(), nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
		if v, err = m.load(ctx, key); err != nil { // somebody wrote to it in this very moment
			return nil, err
		}
	}
	return nil, ErrConflict
}

// remove deletes a session that still has the version.
func (m *Memory) remove(ctx context.Context, key Key, version int64) error {
	m.live.drop(key)
	if err := m.deleteVectors(ctx, key); err != nil {
		return err
	}
	return Remove(ctx, m.store, key, version)
}

// Remove deletes a session that still has the version, else it returns
// ErrConflict. With a store that is no Remover, what another process says
// between the look and the deletion is lost.
func Remove(ctx context.Context, store Store, key Key, version int64) error {
	if r, ok := store.(Remover); ok {
		return r.Remove(ctx, key, version)
	}
	head, err := store.Head(ctx, key)
	if err != nil {
		return err
	}
	if head.Version != version {
		return ErrConflict
	}
	return store.Delete(ctx, key)
}

// Prune deletes the sessions whose ttl is over and tells how many they were. A
// memory without a ttl has none.
func (m *Memory) Prune(ctx context.Context) (int, error) {
	if _, err := m.deleteOrphanedVectors(ctx); err != nil || m.ttl == 0 {
		return 0, err
	}
	var over []SessionHead
	for l, err := range m.store.Sessions(ctx, m.id) {
		if err != nil {
			return 0, err
		}
		if m.expired(l.Head.State) {
			over = append(over, l)
		}
	}
	n := 0
	for _, l := range over {
		gone, err := m.prune(ctx, l)
		if err != nil {
			return n, err
		}
		n += gone
	}
	return n, nil
}

func (m *Memory) prune(ctx context.Context, l SessionHead) (int, error) {
	if err := m.lanes.lock(ctx, l.Session); err != nil {
		return 0, waitTurn(m, l.Session, err)
	}
	defer m.lanes.unlock(l.Session)
	err := m.remove(ctx, m.key(l.Session), l.Head.Version)
	if errors.Is(err, ErrConflict) {
		return 0, nil // somebody said something just now
	}
	if err != nil {
		return 0, err
	}
	return 1, nil
}
