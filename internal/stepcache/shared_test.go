package stepcache_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/stepcache/stepcachetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	memstore "github.com/qtype-dev/qtype/memory/store"
)

// openStore opens a store of memories.
func openStore(t *testing.T, address string) memstore.Store {
	t.Helper()
	store, err := storeurl.Open(address)
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
}

// TestEntries: all places have the same entries, by scope and key, for all that open them.
func TestEntries(t *testing.T) { allEntries(t, stepcachetest.Entries) }

// TestEntries_Limit: the entries of a step have at most the size that it allows.
func TestEntries_Limit(t *testing.T) { allEntries(t, stepcachetest.Limit) }

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
	if n, err := b.Clear(t.Context(), nil); n != 0 || err != nil || len(stepcachetest.Contents(t, a)) != 1 {
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
