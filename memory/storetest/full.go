package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// RunFull checks that a store with a full disk returns a StoreError, keeps its
// content, and continues when there is space again. limit sets the size of the disk in bytes.
func RunFull(t *testing.T, s store.Store, limit func(bytes int)) {
	m := newMemory(t, s)
	random := func(n int) chat.Message { // not compressible
		text := make([]byte, 0, 8<<10)
		for i := 0; len(text) < 8<<10; i++ {
			text = append(text, fmt.Sprintf("%x", (n*8191+i)*2654435761)...)
		}
		return chat.Text(chat.User, fmt.Sprint(n, " ", string(text)))
	}
	added := 0
	var err error
	for ; err == nil && added < 100_000; added++ {
		err = m.Append(t.Context(), "s", random(added))
	}
	added-- // the last one was refused
	var e *store.StoreError
	if !errors.As(err, &e) || e.Problem != store.Full {
		t.Fatalf("after %d messages: %v, want a StoreError of kind Full", added, err)
	}
	checkOneLine(t, err)
	check := func(want int) {
		t.Helper()
		got := entries(t, s, store.Key{Memory: "m", Session: "s"}, store.Query{})
		if len(got) != want {
			t.Fatalf("%d messages, want %d", len(got), want)
		}
		for i, e := range got {
			if e.Message.Text() != random(i).Text() {
				t.Fatalf("message %d is %.20s", i, e.Message.Text())
			}
		}
	}
	check(added)
	limit(64 << 20)
	testkit.Must(t, m.Append(t.Context(), "s", random(added)))
	check(added + 1)
	t.Logf("full after %d messages: %v", added, err)
}
