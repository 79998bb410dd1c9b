package redis_test

import (
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// TestStore_RemovedEntry checks that a list from which another program removed messages
// yields the others once, from every position.
func TestStore_RemovedEntry(t *testing.T) {
	server := startServer(t)
	s := open(t, "redis://"+server.Address())
	defer func() { testkit.Must(t, s.Close()) }()
	const last = 200
	c := store.Change{Next: 7, State: store.State{Last: last}}
	for seq := int64(1); seq <= last; seq++ {
		c.Entries = append(c.Entries, &store.Entry{Seq: seq, Message: chat.Message{ID: fmt.Sprint(seq), Role: chat.User}})
	}
	testkit.Must(t, s.Apply(t.Context(), key, c))
	for _, index := range []int{2, 68, 68} { // of messages 3, 70 and 71
		list := "qtype:{" + tag + "}:messages"
		send(t, server, fmt.Sprintf("LSET %s %d gone", list, index), "LREM "+list+" 1 gone")
	}
	for _, from := range []int64{0, 3, 4, 71, 72, last} {
		want := max(from, 1)
		for e, err := range s.Entries(t.Context(), key, store.Query{From: from}) {
			testkit.Must(t, err)
			for want == 3 || want == 70 || want == 71 {
				want++
			}
			if e.Seq != want {
				t.Fatalf("from %d: got %d, want %d", from, e.Seq, want)
			}
			want++
		}
		if want != last+1 {
			t.Errorf("from %d: read up to %d, want %d", from, want-1, last)
		}
	}
}
