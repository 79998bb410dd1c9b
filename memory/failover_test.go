package memory_test

import (
	"context"
	"iter"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// replicatedStore is a server with a replica, which gets the changes of the primary until lagging
// is set, and takes its place when failed is set.
type replicatedStore struct {
	memory.Store // the primary
	replica      memory.Store

	lagging, failed bool
}

func (s *replicatedStore) current() memory.Store {
	if s.failed {
		return s.replica
	}
	return s.Store
}

func (s *replicatedStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	if !s.lagging && !s.failed {
		if err := s.replica.Apply(ctx, key, c); err != nil {
			return err
		}
	}
	return s.current().Apply(ctx, key, c)
}

func (s *replicatedStore) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	return s.current().Head(ctx, key)
}

func (s *replicatedStore) Entries(ctx context.Context, key memory.Key, q store.Query) iter.Seq2[*memory.Entry, error] {
	return s.current().Entries(ctx, key, q)
}

// A process whose last turn was lost with the server of the store, whose replica did not have it
// yet, does not take the turn that another process has made instead for its own.
func TestTurn_LostByFailover(t *testing.T) {
	shared := &replicatedStore{Store: memory.NewInProcess(), replica: memory.NewInProcess()}
	one, two := newMemory(t, shared), newMemory(t, shared)
	say := func(m *memory.Memory, text string) {
		t.Helper()
		testkit.Must(t, m.Turn(t.Context(), "s", func(turn *memory.Turn) error { return turn.Add(chat.Text(chat.User, text)) }))
	}
	say(one, "first")
	shared.lagging = true
	say(one, "lost")
	shared.failed = true
	say(two, "second")
	say(one, "third")
	for name, m := range map[string]*memory.Memory{"the process with the lost turn": one, "the other one": two} {
		if got, want := windowTexts(t, m, "s"), "user:first user:second user:third"; got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}
