package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/redisclient"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// TestStore_RemoveAll: many sessions are deleted in a few round trips, also if the server
// does not know the script, and nothing of them stays.
func TestStore_RemoveAll(t *testing.T) {
	address := newAddress(shared.Get(t))
	s := open(t, address)
	defer func() { testkit.Must(t, s.Close()) }()
	var sent roundtripCounter
	testkit.Must(t, s.Hook(&sent))
	const sessions = 1500
	for i := range sessions {
		testkit.Must(t, s.Apply(t.Context(), store.Key{Memory: "m", Session: fmt.Sprint("s", i)}, store.Change{Next: 1}))
	}
	heads, err := s.ListSessions(t.Context(), "m", store.SessionQuery{})
	testkit.Must(t, err)
	server, prefix, _ := strings.Cut(address, "?key_prefix=")
	client := redisclient.New(strings.TrimPrefix(strings.TrimSuffix(server, "/0"), "redis://"))
	defer func() { testkit.Must(t, client.Close()) }()
	testkit.Must(t, client.ScriptFlush(t.Context()).Err())
	before := sent.n.Load()
	if n, err := s.RemoveAll(t.Context(), "m", heads); n != sessions || err != nil {
		t.Errorf("%d sessions were deleted, %v, want %d", n, err, sessions)
	}
	if n := sent.n.Load() - before; n != 4 {
		t.Errorf("%d round trips, want one for each 1,000 sessions and one for their places in the list", n)
	}
	keys, err := client.Keys(t.Context(), prefix+"*").Result()
	if len(keys) > 0 || err != nil {
		t.Errorf("keys that stay: %q, %v", keys, err)
	}
}
