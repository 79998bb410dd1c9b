package memory

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Ephemeral returns a memory with the configuration of m that stores nothing
// outside of it: each of its sessions begins with these messages, to which the
// policy applies as if they had been appended. It is for callers that send the
// conversation with each request. Messages without an id, or with one that an
// earlier message has, get a new id. It returns an error for messages that cannot
// be stored.
func (m *Memory) Ephemeral(history []chat.Message) (*Memory, error) {
	if err := window.CheckMessages(history); err != nil {
		return nil, err
	}
	e := m.clone()
	begun := &begunStore{Store: inprocess.New(), memory: e}
	known := map[string]bool{}
	for _, msg := range history {
		if known[msg.ID] {
			msg.ID = ""
		}
		entry := window.NewEntry(m.reader.Counter, msg)
		known[entry.Message.ID] = true
		begun.entries = append(begun.entries, entry)
	}
	e.reader.Store = begun
	return e, nil
}

// clone returns a memory of the same configuration, without a store and a ttl.
func (m *Memory) clone() *Memory {
	c := &Memory{id: m.id, kind: m.kind, systemFirst: m.systemFirst, limitsOf: m.limitsOf, turns: m.turns, lease: m.lease,
		now: m.now, context: m.context, compactAt: m.compactAt}
	c.reader = history.Reader{Memory: m.id, Counter: m.reader.Counter, Measured: m.reader.Measured, Compactor: m.reader.Compactor}
	if p := m.policy.Load(); p != nil {
		c.policy.Store(p)
	}
	return c
}

// begunStore is a store in this process whose sessions have messages from the start.
type begunStore struct {
	*inprocess.Store
	memory  *Memory
	entries []*store.Entry
}

// Head creates the session if there is none.
func (s *begunStore) Head(ctx context.Context, key store.Key) (store.Head, error) {
	head, err := s.Store.Head(ctx, key)
	if err != nil || head.Version != 0 || len(s.entries) == 0 || key.Memory != s.memory.id {
		return head, err
	}
	if err := s.begin(ctx, key); err != nil && !store.IsConflict(err) {
		return store.Head{}, err
	}
	return s.Store.Head(ctx, key)
}

// begin adds the first messages to a session.
func (s *begunStore) begin(ctx context.Context, key store.Key) error {
	p, err := s.memory.policyOf(key.Session)
	if err != nil {
		return err
	}
	entries := slices.Clone(s.entries)
	for i, e := range entries {
		c := *e
		entries[i] = &c
	}
	var n change.Transition
	n.Add(p, s.memory.kind.Name, s.memory.reader.NewView(), change.Addition{Entries: entries, Each: true}, s.memory.moment())
	n.Change.Next, n.Change.State = store.NextVersion(0), n.Next.State
	return s.Apply(ctx, key, n.Change)
}
