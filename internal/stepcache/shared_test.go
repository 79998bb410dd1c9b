package stepcache_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	memoryservers "github.com/qtype-dev/qtype/internal/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/testkit"
	memstore "github.com/qtype-dev/qtype/memory/store"
)

// openStore opens a store of memories.
func openStore(t *testing.T, address string) memstore.Store {
	t.Helper()
	store, err := storeurl.Open(address, storeurl.Among(memoryservers.Openers()))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, store.Close()) })
	return store
}

// allEntries calls run with every implementation of Entries.
func allEntries(t *testing.T, run func(t *testing.T, open func() stepcache.Entries)) {
	t.Run("file", func(t *testing.T) {
		dir := t.TempDir()
		run(t, func() stepcache.Entries {
			s := stepcache.Open(dir, nil)
			t.Cleanup(func() { testkit.Must(t, s.Close()) })
			return s
		})
	})
	shared := func(name string, store func(*testing.T) memstore.Store) {
		t.Run(name, func(t *testing.T) {
			opened := store(t)
			run(t, func() stepcache.Entries { return stepcache.NewShared(memstore.NewApplication(opened, "app/1")) })
		})
	}
	shared("in process", func(*testing.T) memstore.Store { return inprocess.New() })
	shared("encrypted", func(t *testing.T) memstore.Store {
		keys, err := encrypted.ParseKeys(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
		testkit.Must(t, err)
		return encrypted.New(inprocess.New(), "there", encrypted.Keys{Key: keys[0]})
	})
	shared("sqlite", func(t *testing.T) memstore.Store { return openStore(t, "sqlite:"+filepath.Join(t.TempDir(), "m.db")) })
	shared("postgres", func(t *testing.T) memstore.Store {
		pg, err := servertest.Postgres()
		servertest.Need(t, err)
		t.Cleanup(func() { testkit.Must(t, pg.Close()) })
		return openStore(t, pg.URL())
	})
	shared("redis", func(t *testing.T) memstore.Store {
		rd, err := servertest.Redis()
		servertest.Need(t, err)
		t.Cleanup(func() { testkit.Must(t, rd.Close()) })
		return openStore(t, "redis://"+rd.Address())
	})
}

// contents returns the scopes and the numbers of entries.
func contents(t *testing.T, s stepcache.Entries) map[stepcache.Scope]int64 {
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

// TestEntries: all places have the same entries, by scope and key, for all that open them.
func TestEntries(t *testing.T) {
	allEntries(t, func(t *testing.T, open func() stepcache.Entries) {
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
		if diff := cmp.Diff(want, contents(t, b)); diff != "" {
			t.Error(diff)
		}
		testkit.Must(t, b.Drop(t.Context(), scopes[3], keyOf("0")))
		testkit.Must(t, b.Drop(t.Context(), scopes[3], keyOf("unknown")))
		want[scopes[3]]--
		if diff := cmp.Diff(want, contents(t, a)); diff != "" {
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
		if diff := cmp.Diff(map[stepcache.Scope]int64{scopes[3]: 3}, contents(t, b)); diff != "" {
			t.Error("pruned:", diff)
		}
	})
}

// TestEntries_Limit: the entries of a step have at most the size that it allows, for several processes apart from what each may
// add before it looks.
func TestEntries_Limit(t *testing.T) {
	allEntries(t, func(t *testing.T, open func() stepcache.Entries) {
		const limit, size, writers = 40_000, 1_000, 4
		p := stepcache.Policy{MaxBytes: limit}
		var group sync.WaitGroup
		for w := range writers {
			s := open()
			group.Go(func() {
				for n := range 40 {
					if stored, err := s.Put(t.Context(), step, keyOf(fmt.Sprint(w, n)), make([]byte, size), p); err != nil || !stored {
						t.Error(stored, err)
					}
				}
			})
		}
		group.Wait()
		s := open()
		if stored, err := s.Put(t.Context(), step, keyOf("large"), make([]byte, limit+1), p); stored || err != nil {
			t.Errorf("an entry above the limit was stored: %v", err)
		}
		stats, err := s.Stats(t.Context())
		testkit.Must(t, err)
		if most := int64(limit + writers*limit/20 + writers*size); len(stats) != 1 || stats[0].Bytes > most || stats[0].Bytes < limit/2 {
			t.Errorf("%+v, want at most %d bytes", stats, most)
		}
	})
}

// TestShared_Expires: an entry expires after the ttl that it was stored with, or the one that the step has now.
func TestShared_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stepcache.NewShared(memstore.NewApplication(inprocess.New(), "app"))
		stored, err := s.Put(t.Context(), step, keyOf("k"), []byte("x"), stepcache.Policy{TTL: time.Minute})
		if err != nil || !stored {
			t.Fatal(stored, err)
		}
		found := func(p stepcache.Policy) bool {
			_, found, err := s.Get(t.Context(), step, keyOf("k"), p)
			testkit.Must(t, err)
			return found
		}
		time.Sleep(30 * time.Second)
		if !found(stepcache.Policy{}) || found(stepcache.Policy{TTL: 30 * time.Second}) {
			t.Error("after half of the time")
		}
		time.Sleep(30 * time.Second)
		if found(stepcache.Policy{}) {
			t.Error("found an expired entry")
		}
		if n, err := s.Prune(t.Context(), func(stepcache.Scope) bool { return true }, time.Time{}); n != 1 || err != nil {
			t.Errorf("pruned %d, %v", n, err)
		}
	})
}

// TestShared_Applications: applications with one store do not see each other's entries.
func TestShared_Applications(t *testing.T) {
	store := inprocess.New()
	a, b := stepcache.NewShared(memstore.NewApplication(store, "a")), stepcache.NewShared(memstore.NewApplication(store, "a/b"))
	if _, err := a.Put(t.Context(), step, keyOf("k"), []byte("x"), stepcache.Policy{}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := b.Get(t.Context(), step, keyOf("k"), stepcache.Policy{}); found || err != nil {
		t.Errorf("found that of another application, %v", err)
	}
	if n, err := b.Clear(t.Context(), nil); n != 0 || err != nil || len(contents(t, a)) != 1 {
		t.Errorf("removed %d of another application, %v", n, err)
	}
}

// TestShared_ShortProcesses: processes that end before they have added a twentieth of the limit do not exceed it together.
func TestShared_ShortProcesses(t *testing.T) {
	const limit, size = 40_000, 1_000
	store := inprocess.New()
	for n := range 400 {
		s := stepcache.NewShared(memstore.NewApplication(store, "app"))
		stored, err := s.Put(t.Context(), step, keyOf(fmt.Sprint(n)), make([]byte, size), stepcache.Policy{MaxBytes: limit})
		if err != nil || !stored {
			t.Fatal(stored, err)
		}
	}
	stats, err := stepcache.NewShared(memstore.NewApplication(store, "app")).Stats(t.Context())
	testkit.Must(t, err)
	if len(stats) != 1 || stats[0].Bytes > 2*limit {
		t.Errorf("%+v, want about %d bytes", stats, limit)
	}
}
