package memory

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// Prune deletes the sessions whose ttl is over and returns their number. A
// memory without a ttl has none. Expired sessions that are not pruned are
// deleted when they are used next; until then reads do not return them.
func (m *Memory) Prune(ctx context.Context) (int, error) { return m.PruneUnused(ctx, time.Time{}) }

// PruneUnused is Prune for the sessions of Unused.
func (m *Memory) PruneUnused(ctx context.Context, before time.Time) (int, error) {
	if m.context != nil {
		if err := m.context.Prune(ctx, m.store, m.id); err != nil {
			return 0, err
		}
	}
	if m.ttl == 0 && before.IsZero() {
		return 0, nil
	}
	var unused []SessionHead
	for l, err := range m.Unused(ctx, before) {
		if err != nil {
			return 0, err
		}
		unused = append(unused, l)
	}
	n := 0
	for batch := range slices.Chunk(unused, prunedAtOnce) {
		deleted, err := m.prune(ctx, batch)
		if n += deleted; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Unused returns the sessions whose ttl is over, and those whose newest message is from before
// a time, unless it is zero.
func (m *Memory) Unused(ctx context.Context, before time.Time) iter.Seq2[SessionHead, error] {
	return func(yield func(SessionHead, error) bool) {
		for l, err := range m.store.Sessions(ctx, m.id) {
			last := l.Head.State.LastSaid
			if err == nil && !m.expired(l.Head.State) && (last.IsZero() || !last.Before(before)) {
				continue
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// prunedAtOnce is how many sessions are locked while they are deleted.
const prunedAtOnce = 1000

// prune deletes sessions that have not changed, and returns their number. One that a turn
// of this process uses stays: its ttl begins again.
func (m *Memory) prune(ctx context.Context, sessions []SessionHead) (int, error) {
	var locked []SessionHead
	for _, l := range sessions {
		s, err := m.sessions.tryLock(ctx, l.Session)
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return 0, m.waitError(l.Session, err)
		}
		defer m.sessions.unlock(s)
		if err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: l.Session, Reason: auditExpired, Messages: l.Head.State.Last}); err != nil {
			return 0, err
		}
		if err := m.forget(ctx, Key{Memory: m.id, Session: l.Session}); err != nil {
			return 0, err
		}
		locked = append(locked, l)
	}
	return RemoveAll(ctx, m.store, m.id, locked)
}
