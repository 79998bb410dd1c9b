package storetest

import (
	"fmt"
	"testing"

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
