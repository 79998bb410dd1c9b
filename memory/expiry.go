package memory

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/locks"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/memory/store"
)

// Prune deletes the sessions whose ttl is over and returns their number. A
// memory without a ttl has none. Expired sessions that are not pruned are
// deleted when they are used next; until then reads do not return them.
func (m *Memory) Prune(ctx context.Context) (int, error) { return m.PruneUnused(ctx, time.Time{}) }

// PruneUnused is Prune for the sessions of Unused.
func (m *Memory) PruneUnused(ctx context.Context, before time.Time) (int, error) {
	if err := segments.Prune(ctx, m.reader.Store, m.id, m.moment()); err != nil {
		return 0, err
	}
	if m.context != nil {
		if err := m.context.Prune(ctx, m.reader.Store, m.id); err != nil {
			return 0, err
		}
	}
	if m.ttl == 0 && before.IsZero() {
		return 0, nil
	}
	n := 0
	for page, err := range m.pagesOfHeads(ctx) {
		if err != nil {
			return n, err
		}
		unused := slices.DeleteFunc(page, func(l store.SessionHead) bool { return !m.unused(l, before) })
		for batch := range slices.Chunk(unused, prunedAtOnce) {
			deleted, err := m.prune(ctx, batch)
			if n += deleted; err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Unused returns the sessions whose ttl is over and, unless the time is zero, the sessions
// without a message since then.
func (m *Memory) Unused(ctx context.Context, before time.Time) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		for page, err := range m.pagesOfHeads(ctx) {
			if err != nil {
				yield(store.SessionHead{}, err)
				return
			}
			for _, l := range page {
				if m.unused(l, before) && !yield(l, nil) {
					return
				}
			}
		}
	}
}

// unused reports whether the ttl of a session is over, or its newest message is from before a
// time.
func (m *Memory) unused(l store.SessionHead, before time.Time) bool {
	last := l.Head.State.LastSaid
	return m.expired(l.Head.State) || !last.IsZero() && last.Before(before)
}

// pagesOfHeads yields the heads of all sessions: in pages, if the store can continue a
// list: a million sessions do not fit into memory.
func (m *Memory) pagesOfHeads(ctx context.Context) iter.Seq2[[]store.SessionHead, error] {
	return func(yield func([]store.SessionHead, error) bool) {
		q := store.SessionQuery{Limit: listed}
		if _, pages := m.reader.Store.(store.SessionLister); !pages || m.local != nil {
			q.Limit = 0
		}
		for {
			page, err := store.ListSessions(ctx, m.reader.Store, m.id, q)
			if len(page) > 0 {
				q.After = page[len(page)-1].Session
			}
			more := q.Limit > 0 && len(page) == q.Limit // yield may change page
			if !yield(page, err) || err != nil || !more {
				return
			}
		}
	}
}

// prunedAtOnce is how many sessions are locked while they are deleted.
const prunedAtOnce = 1000

// prune deletes sessions that have not changed, and returns their number. One that a turn
// of this process uses stays: its ttl begins again.
func (m *Memory) prune(ctx context.Context, sessions []store.SessionHead) (int, error) {
	var locked []store.SessionHead
	for _, l := range sessions {
		s, err := m.sessions.TryLock(ctx, l.Session)
		if errors.Is(err, locks.ErrBusy) {
			continue
		}
		if err != nil {
			return 0, m.waitError(l.Session, err)
		}
		defer m.sessions.Unlock(s)
		reason := auditExpired
		if !m.expired(l.Head.State) {
			reason = auditUnused
		}
		if err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: l.Session, Reason: reason, Messages: l.Head.State.Last}); err != nil {
			return 0, err
		}
		if err := m.forget(ctx, store.Key{Memory: m.id, Session: l.Session}, l.Head.State.Last); err != nil {
			return 0, err
		}
		locked = append(locked, l)
	}
	n, err := store.RemoveAll(ctx, m.reader.Store, m.id, locked)
	if err != nil {
		return n, err
	}
	ids := make([]string, len(locked))
	for i, l := range locked {
		ids[i] = l.Session
		if err := m.forgetWords(ctx, store.Key{Memory: m.id, Session: l.Session}, l.Head.State.Last); err != nil { // see erase
			return n, err
		}
	}
	return n, m.deleted(ctx, ids...)
}
