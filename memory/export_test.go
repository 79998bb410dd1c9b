package memory

import (
	"context"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// NewWithEviction returns a memory with a policy that is not in spec.Policies:
// Evict returns the indexes of the entries that leave, ascending.
func NewWithEviction(cfg Config, store store.Store, evict func([]*store.Entry) []int) (*Memory, error) {
	kind := window.Kind{PolicyRow: spec.PolicyRow{Name: "test"}, Builder: window.Builder{Build: func(window.Limits) window.Policy { return testPolicy{evictFunc: evict} }}}
	return newMemory(cfg, kind, store)
}

type testPolicy struct {
	window.KeepAll
	evictFunc func([]*store.Entry) []int
}

func (p testPolicy) Evict(v *window.View, _, _ int) window.Eviction {
	return window.EvictIndexes(p.evictFunc(v.Entries))
}
func (testPolicy) Usage(messages, _ int) (int, int, store.Unit) {
	return messages, 0, store.InMessages
}

// AppendUnchecked appends messages as versions did that accepted tool calls without
// results, and results without calls.
func (m *Memory) AppendUnchecked(ctx context.Context, session string, msgs ...chat.Message) error {
	t, err := m.open(ctx, session, false)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.Add(msgs...); err != nil {
		return err
	}
	return t.commit(ctx, true)
}
