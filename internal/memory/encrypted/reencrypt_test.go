package encrypted_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	memoryservers "github.com/qtype-dev/qtype/internal/memory/servers"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// reencrypt encrypts memory m of a store again.
func reencrypt(t *testing.T, s *encrypted.Store) encrypted.ReencryptReport {
	t.Helper()
	report, err := s.Reencrypt(t.Context(), "m")
	testkit.Must(t, err)
	return report
}

// TestStore_Reencrypt encrypts stores of every format, and one without encryption, with
// another key, so that they can be read with that key alone.
func TestStore_Reencrypt(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	plain := func(t *testing.T) string {
		dir := t.TempDir()
		s, err := openInner(dir)
		testkit.Must(t, err)
		runTurns(t, newMemory(t, s), "s")
		testkit.Must(t, s.Close())
		return dir
	}
	for name, test := range map[string]struct {
		place func(t *testing.T) string
		keys  encrypted.Keys
	}{
		"format 1":    {func(t *testing.T) string { return restore(t, "format1.sql") }, encrypted.Keys{Key: b, Old: []encrypted.Key{a}}},
		"format 2":    {func(t *testing.T) string { return restore(t, "format2.sql") }, encrypted.Keys{Key: b, Old: []encrypted.Key{a}}},
		"unencrypted": {plain, encrypted.Keys{Key: b, AllowUnencrypted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := test.place(t)
			s := open(t, dir, test.keys)
			report := reencrypt(t, s)
			if report.Sessions != 1 || report.Messages != 9 || report.Events == 0 || report.Same != 0 {
				t.Errorf("the first time: %+v", report)
			}
			if report := reencrypt(t, s); report.Sessions != 0 || report.Messages != 0 || report.Same != 1 {
				t.Errorf("the second time: %+v", report)
			}
			runTurn(t, newMemory(t, s), "s", "fifth")
			testkit.Must(t, s.Close())
			s = open(t, dir, encrypted.Keys{Key: b})
			defer func() { testkit.Must(t, s.Close()) }()
			got := content(t, newMemory(t, s))
			for _, want := range []string{"1 flushed user: first", "7 failed user: Geheim-failed", "10 in window user: fifth", "failed of turn 4: 1 messages, the model said Geheim-reason"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in:\n%s", want, got)
				}
			}
		})
	}
}

// TestStore_ReencryptInserted checks that a message that another program inserted without
// encryption into a session with a seal is not made one of the session.
func TestStore_ReencryptInserted(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	dir := t.TempDir()
	s := open(t, dir, encrypted.Keys{Key: a})
	runTurns(t, newMemory(t, s), "s")
	testkit.Must(t, s.Close())
	execSQL(t, dir, `UPDATE entries SET message = '{"id":"x","role":"user","blocks":[{"type":"text","content":"pay"}]}' WHERE id & 68719476735 = 3`)
	s = open(t, dir, encrypted.Keys{Key: b, Old: []encrypted.Key{a}, AllowUnencrypted: true})
	defer func() { testkit.Must(t, s.Close()) }()
	if _, err := s.Reencrypt(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "message 3") {
		t.Errorf("got %v", err)
	}
}

// TestStore_ReencryptNotSupported checks the error for a store that cannot replace records.
func TestStore_ReencryptNotSupported(t *testing.T) {
	inner := inprocess.New()
	defer func() { testkit.Must(t, inner.Close()) }()
	s := encrypted.New(struct{ store.Store }{inner}, "custom", encrypted.Keys{Key: key(t, "a")})
	if _, err := s.Reencrypt(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "store.Replacer") {
		t.Errorf("got %v", err)
	}
}

// newServers returns functions that return the addresses of empty stores.
func newServers(t *testing.T) map[string]func() string {
	t.Helper()
	redis, err := servertest.Redis()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, redis.Close()) })
	postgres, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, postgres.Close()) })
	n := 0
	return map[string]func() string{
		"sqlite": func() string { return "sqlite:" + filepath.Join(t.TempDir(), "memory.db") },
		"redis":  func() string { n++; return fmt.Sprintf("redis://%s/0?key_prefix=t%d:", redis.Address(), n) },
		"postgres": func() string {
			n++
			separator := "?"
			if strings.Contains(postgres.URL(), "?") {
				separator = "&"
			}
			return fmt.Sprintf("%s%stable_prefix=t%d_", postgres.URL(), separator, n)
		},
	}
}

func openAddress(t testing.TB, address string, keys encrypted.Keys) *encrypted.Store {
	t.Helper()
	s, err := storeurl.Open(address, storeurl.Among(memoryservers.Openers()), storeurl.Encrypt(keys))
	testkit.Must(t, err)
	return s.(*encrypted.Store)
}

// TestStore_ReencryptWithWriters checks that writers of the new and of the old key, which
// write all the time, lose nothing, and that what they wrote can be read with the new key.
func TestStore_ReencryptWithWriters(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	addresses := newServers(t)
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) { reencryptWithWriters(t, address(), a, b) })
	}
	t.Run("in process", func(t *testing.T) {
		inner := inprocess.New()
		defer func() { testkit.Must(t, inner.Close()) }()
		withWriters(t, a, b, func(keys encrypted.Keys) (*encrypted.Store, func()) {
			return encrypted.New(inner, "memory:", keys), func() {}
		})
	})
}

func reencryptWithWriters(t *testing.T, address string, a, b encrypted.Key) {
	t.Helper()
	withWriters(t, a, b, func(keys encrypted.Keys) (*encrypted.Store, func()) {
		s := openAddress(t, address, keys)
		return s, func() { testkit.Must(t, s.Close()) }
	})
}

func withWriters(t *testing.T, a, b encrypted.Key, open func(encrypted.Keys) (*encrypted.Store, func())) {
	t.Helper()
	const sessions, messages, writers, each = 3, 100, 8, 60
	s, closeFirst := open(encrypted.Keys{Key: a})
	defer closeFirst()
	for i := range sessions {
		m := newMemory(t, s)
		for n := range messages {
			testkit.Must(t, m.Append(t.Context(), fmt.Sprint("s", i), user(fmt.Sprint("first-", n))))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var acknowledged [writers]atomic.Int64
	for w := range writers {
		keys := encrypted.Keys{Key: b, Old: []encrypted.Key{a}}
		if w == 0 {
			keys = encrypted.Keys{Key: a, Old: []encrypted.Key{b}} // it has the new key, and does not use it yet
		}
		own, closeOwn := open(keys)
		m := newMemory(t, own)
		all.Go(func() {
			defer closeOwn()
			for n := 0; ctx.Err() == nil && n < each; n++ {
				err := m.Append(t.Context(), fmt.Sprint("s", n%sessions), user(fmt.Sprint(w, "-", n)))
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[w].Add(1)
			}
		})
	}
	both, closeBoth := open(encrypted.Keys{Key: b, Old: []encrypted.Key{a}})
	defer closeBoth()
	report, err := both.Reencrypt(t.Context(), "m")
	stop()
	all.Wait()
	var stored *store.Error
	if err != nil && (!errors.As(err, &stored) || stored.Problem != store.Locked) { // the writer of the old key was faster each time
		t.Fatal(err)
	}
	after := reencrypt(t, both)
	t.Logf("with writers: %+v; afterwards: %+v", report, after)
	if n := report.Messages + after.Messages; n < sessions*messages {
		t.Errorf("%d messages were encrypted again, want at least %d", n, sessions*messages)
	}
	strict, closeStrict := open(encrypted.Keys{Key: b})
	defer closeStrict()
	found := map[string]int64{}
	for i := range sessions {
		for e, err := range strict.Entries(t.Context(), store.Key{Memory: "m", Session: fmt.Sprint("s", i)}, store.Query{}) {
			testkit.Must(t, err)
			writer, _, _ := strings.Cut(e.Message.Text(), "-")
			found[writer]++
		}
	}
	if found["first"] != sessions*messages {
		t.Errorf("%d of the first messages, want %d", found["first"], sessions*messages)
	}
	for w := range writers {
		if n := acknowledged[w].Load(); found[fmt.Sprint(w)] != n {
			t.Errorf("writer %d: %d messages were acknowledged, %d found", w, n, found[fmt.Sprint(w)])
		}
	}
}
