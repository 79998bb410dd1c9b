// Package stepcachetest has tests of the places of a cache, for every kind of store.
package stepcachetest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func keyOf(text string) stepcache.Key { return sha256.Sum256([]byte(text)) }

// Contents returns the scopes and the numbers of entries.
func Contents(t *testing.T, s stepcache.Entries) map[stepcache.Scope]int64 {
	t.Helper()
	stats, err := s.Stats(t.Context())
	testkit.Must(t, err)
	all := map[stepcache.Scope]int64{}
	for _, st := range stats {
		if st.Bytes <= 0 || st.Oldest.IsZero() || st.Used.Before(st.Oldest) || st.Expired != 0 {
			t.Errorf("stats: %+v", st)
		}
		all[st.Scope] = st.Entries
	}
	return all
}

// Entries checks that all that open a place have the same entries, by scope and key.
func Entries(t *testing.T, open func() stepcache.Entries) {
	a, b := open(), open()
	scopes := []stepcache.Scope{{Step: "ask", Version: "1.0"}, {Step: "ask", Version: "2/3"}, {Namespace: "a/b", Step: "as k%", Version: "1.0"}, {Step: "other"}}
	for i, scope := range scopes {
		for n := range i + 1 {
			for _, text := range []string{"first", fmt.Sprintf("entry %d of %d", n, i)} { // replaces the first one
				stored, err := a.Put(t.Context(), scope, keyOf(fmt.Sprint(n)), []byte(text), stepcache.Policy{Compress: i%2 == 0, TTL: time.Hour})
				if err != nil || !stored {
					t.Fatal(stored, err)
				}
			}
		}
	}
	want := map[stepcache.Scope]int64{}
	for i, scope := range scopes {
		want[scope] = int64(i + 1)
		for n := range i + 1 {
			entry, found, err := b.Get(t.Context(), scope, keyOf(fmt.Sprint(n)), stepcache.Policy{})
			if err != nil || !found || string(entry) != fmt.Sprintf("entry %d of %d", n, i) {
				t.Errorf("%v %d: %s, %t, %v", scope, n, entry, found, err)
			}
		}
		if _, found, err := b.Get(t.Context(), scope, keyOf("unknown"), stepcache.Policy{}); found || err != nil {
			t.Errorf("%v: found an unknown entry, %v", scope, err)
		}
	}
	if diff := cmp.Diff(want, Contents(t, b)); diff != "" {
		t.Error(diff)
	}
	testkit.Must(t, b.Drop(t.Context(), scopes[3], keyOf("0")))
	testkit.Must(t, b.Drop(t.Context(), scopes[3], keyOf("unknown")))
	want[scopes[3]]--
	if diff := cmp.Diff(want, Contents(t, a)); diff != "" {
		t.Error("dropped:", diff)
	}
	removed, err := a.Clear(t.Context(), func(s stepcache.Scope) bool { return s.Step == "ask" })
	if err != nil || removed != 3 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if n, _, err := a.Unused(t.Context(), func(stepcache.Scope) bool { return true }, time.Time{}); n != 0 || err != nil {
		t.Errorf("%d are expired, %v", n, err)
	}
	n, bytes, err := a.Unused(t.Context(), func(s stepcache.Scope) bool { return s.Namespace != "" }, time.Now().Add(time.Hour/2))
	if n != 3 || bytes <= 0 || err != nil {
		t.Errorf("%d with %d bytes are unused, %v", n, bytes, err)
	}
	if removed, err := a.Prune(t.Context(), func(s stepcache.Scope) bool { return s.Namespace != "" }, time.Now().Add(time.Hour/2)); err != nil || removed != 3 {
		t.Errorf("pruned %d, %v", removed, err)
	}
	if diff := cmp.Diff(map[stepcache.Scope]int64{scopes[3]: 3}, Contents(t, b)); diff != "" {
		t.Error("pruned:", diff)
	}
}

// Limit checks that the entries of a step have at most the size that it allows, for several processes apart from what each may
// add before it looks.
func Limit(t *testing.T, open func() stepcache.Entries) {
	const limit, size, writers = 40_000, 1_000, 4
	p := stepcache.Policy{MaxBytes: limit}
	var group sync.WaitGroup
	for w := range writers {
		s := open()
		group.Go(func() {
			for n := range 40 {
				if stored, err := s.Put(t.Context(), stepcache.Scope{Step: "ask"}, keyOf(fmt.Sprint(w, n)), make([]byte, size), p); err != nil || !stored {
					t.Error(stored, err)
				}
			}
		})
	}
	group.Wait()
	s := open()
	if stored, err := s.Put(t.Context(), stepcache.Scope{Step: "ask"}, keyOf("large"), make([]byte, limit+1), p); stored || err != nil {
		t.Errorf("an entry above the limit was stored: %v", err)
	}
	stats, err := s.Stats(t.Context())
	testkit.Must(t, err)
	if most := int64(limit + writers*limit/20 + writers*size); len(stats) != 1 || stats[0].Bytes > most || stats[0].Bytes < limit/2 {
		t.Errorf("%+v, want at most %d bytes", stats, most)
	}
}
