package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// removeAll checks that the sessions at the version of their head are deleted completely,
// and no others; also if they are more than fit into one transaction.
func removeAll(t *testing.T, s store.Store) {
	if n, err := store.RemoveAll(t.Context(), s, "m", []store.SessionHead{{Session: "unknown", Head: store.Head{Version: 41}}}); n != 0 || err != nil {
		t.Errorf("an empty store: %d sessions, %v", n, err)
	}
	const sessions = 503
	for i := range sessions {
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: fmt.Sprint("s", i)}, add(store.Head{}, "first")))
	}
	changed, other := store.Key{Memory: "m", Session: "s1"}, store.Key{Memory: "m2", Session: "s2"}
	testkit.Must(t, s.Apply(t.Context(), other, sample()))
	var heads []store.SessionHead
	for l, err := range s.Sessions(t.Context(), "m") {
		testkit.Must(t, err)
		heads = append(heads, l)
	}
	head, err := s.Head(t.Context(), changed)
	testkit.Must(t, err)
	testkit.Must(t, s.Apply(t.Context(), changed, add(head, "second")))
	before := dump(t, s, changed)
	if n, err := store.RemoveAll(t.Context(), s, "m", heads); n != sessions-1 || err != nil {
		t.Errorf("%d sessions were deleted, %v, want %d", n, err, sessions-1)
	}
	if after := dump(t, s, changed); len(after.Entries) != 2 || after.Head.Version != before.Head.Version {
		t.Errorf("the session that changed: %+v", after)
	}
	if d := dump(t, s, store.Key{Memory: "m", Session: "s0"}); d.Head.Version != 0 || len(d.Entries) > 0 || len(d.Events) > 0 {
		t.Errorf("a deleted session: %+v", d)
	}
	if d := dump(t, s, other); d.Head.Version != 41 {
		t.Errorf("a session of another memory: %+v", d.Head)
	}
}

func remove(t *testing.T, s store.Store) {
	key, other := store.Key{Memory: "m", Session: "s"}, store.Key{Memory: "m", Session: "s2"}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	testkit.Must(t, s.Apply(t.Context(), other, sample()))
	before := dump(t, s, other)
	testkit.Must(t, s.Delete(t.Context(), key))
	if d := cmp.Diff(dumped{}, dump(t, s, key)); d != "" {
		t.Errorf("left over: %s", d)
	}
	if d := cmp.Diff(before, dump(t, s, other)); d != "" {
		t.Errorf("another session changed: %s", d)
	}
	stale := add(store.Head{Version: 41, State: sample().State}, "z")
	if err := s.Apply(t.Context(), key, stale); err == nil {
		t.Error("a change of a deleted session was applied")
	}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	if d := cmp.Diff(before, dump(t, s, key)); d != "" {
		t.Errorf("the session was not created again: %s", d)
	}
}

// removeUnchanged checks that a Remover deletes a session only if its version is
// unchanged, and that one of several concurrent callers succeeds.
func removeUnchanged(t *testing.T, s store.Store) {
	r, ok := s.(store.Remover)
	if !ok {
		t.Skip("the store is no store.Remover")
	}
	key, other := store.Key{Memory: "m", Session: "s"}, store.Key{Memory: "m", Session: "s2"}
	if err := r.Remove(t.Context(), key, 41); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an empty store: got %v, want ErrConflict", err)
	}
	testkit.Must(t, s.Apply(t.Context(), key, sample()))
	testkit.Must(t, s.Apply(t.Context(), other, sample()))
	before := dump(t, s, key)
	for _, version := range []int64{0, 40, 42} {
		if err := r.Remove(t.Context(), key, version); !errors.Is(err, store.ErrConflict) {
			t.Errorf("version %d: got %v, want ErrConflict", version, err)
		}
	}
	if err := r.Remove(t.Context(), store.Key{Memory: "m", Session: "unknown"}, 41); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an unknown session: got %v, want ErrConflict", err)
	}
	if d := cmp.Diff(before, dump(t, s, key)); d != "" {
		t.Errorf("a conflict changed something: %s", d)
	}
	var won atomic.Int64
	inParallel(4, func(i int) {
		var err error
		if i%2 == 0 {
			err = r.Remove(t.Context(), key, 41)
		} else {
			err = s.Apply(t.Context(), key, add(before.Head, fmt.Sprint("late", i)))
		}
		switch {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d of four changes of the same version were applied, want 1", won.Load())
	}
	head, err := s.Head(t.Context(), key)
	testkit.Must(t, err)
	if head.Version != 0 {
		testkit.Must(t, r.Remove(t.Context(), key, head.Version))
	}
	if d := cmp.Diff(dumped{}, dump(t, s, key)); d != "" {
		t.Errorf("left over: %s", d)
	}
	if d := cmp.Diff(before, dump(t, s, other)); d != "" {
		t.Errorf("another session changed: %s", d)
	}
	for l, err := range s.Sessions(t.Context(), "m") {
		if testkit.Must(t, err); l.Session == key.Session {
			t.Error("it is still listed")
		}
	}
}
