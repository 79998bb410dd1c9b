package memory

import (
	"context"
	"sort"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// load reads a session from the store, and caches it.
func (m *Memory) load(ctx context.Context, key store.Key) (*window.View, error) {
	v, err := m.reader.Load(ctx, key)
	if err == nil {
		m.sessions.SetView(key.Session, v)
	}
	return v, err
}

// reload returns the session as the store has it now, from the cache if nothing
// changed since: then it is a copy in v.
func (m *Memory) reload(ctx context.Context, key store.Key, v *window.View) (*window.View, error) {
	if !m.sessions.View(key.Session, v) {
		return m.load(ctx, key)
	}
	version, err := m.storedVersion(ctx, key, v.Stored)
	if err != nil {
		return nil, err
	}
	if version != v.Version {
		return m.load(ctx, key)
	}
	return v, nil
}

// storedVersion returns the version of a session in the store; s is nil if it is not known.
func (m *Memory) storedVersion(ctx context.Context, key store.Key, s store.LocalSession) (int64, error) {
	if s != nil {
		if end := m.observe(ctx, "head"); end != nil {
			end(ctx.Err())
		}
		return s.Version(), ctx.Err()
	}
	head, err := m.reader.Store.Head(ctx, key)
	return head.Version, err
}

// applyChange makes a change of a session and returns it, nil for a store outside of
// this process; s is nil if it is not known.
func (m *Memory) applyChange(ctx context.Context, key store.Key, s store.LocalSession, c *store.Change) (store.LocalSession, error) {
	if m.local == nil {
		return nil, m.reader.Store.Apply(ctx, key, *c)
	}
	end := m.observe(ctx, "apply")
	s, err := m.local.ApplyLocal(ctx, key, s, c)
	if end != nil {
		end(err)
	}
	return s, err
}

// observe reports an operation of a store in this process that m calls itself; it returns nil
// if nothing is reported.
func (m *Memory) observe(ctx context.Context, operation string) func(error) {
	if m.observer == nil {
		return nil
	}
	return m.observer(ctx, operation)
}

// arrange returns a window of entries with the view's system message in its place.
func (m *Memory) arrange(v *window.View, entries []*store.Entry) window.Window {
	if len(entries) == 0 {
		entries = nil // an empty window is the same however it became empty
	}
	w := window.Window{Entries: entries, System: v.SystemEntry()}
	switch {
	case v.System == nil || m.systemFirst || !m.kind.Supports("keep_system_first"):
	case v.Pending:
		w.SystemAt = max(len(entries)-v.Tail, 0)
	default:
		w.SystemAt = sort.Search(len(entries), func(i int) bool { return entries[i].Seq == 0 || entries[i].Seq > v.System.Seq })
	}
	return w
}
