package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestRemove(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := store.Key{Memory: "m", Session: "s"}
	if err := s.Apply(t.Context(), key, store.Change{Next: 7}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), key, 6); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another version: %v", err)
	}
	if err := s.Remove(t.Context(), key, 7); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), key, 7); !errors.Is(err, store.ErrConflict) {
		t.Errorf("deleted session: %v", err)
	}
}

// addLong creates a session of more messages and events than one transaction deletes.
func addLong(t *testing.T, s *sqlite.Store, key store.Key, n int) {
	t.Helper()
	c := store.Change{Next: 7, State: store.State{Last: int64(n), First: 1}, Values: map[string][]byte{"a": []byte("b")}}
	for i := range n {
		c.Entries = append(c.Entries, &store.Entry{Seq: int64(i + 1), Turn: 1, Message: chat.Text(chat.User, fmt.Sprint(i))})
		c.Events = append(c.Events, store.Event{Kind: store.EventSet})
	}
	if err := s.Apply(t.Context(), key, c); err != nil {
		t.Error(err)
	}
}

// wantRows checks the number of rows of all tables.
func wantRows(t *testing.T, s *sqlite.Store, want int) {
	t.Helper()
	if n, err := s.Rows(t.Context()); n != want || err != nil {
		t.Errorf("the file has %d rows, %v, want %d", n, err, want)
	}
}

// TestRemove_LongSession deletes long sessions and leaves nothing of them, and nothing else leaves.
func TestRemove_LongSession(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "memory.db"))
	defer func() { testkit.Must(t, s.Close()) }()
	const long = 2*sqlite.RemovedRows + 1
	other := store.Key{Memory: "m", Session: "other"}
	addLong(t, s, other, 1)
	const rows = 4 // of other: a session, a message, an event, a value
	for name, remove := range map[string]func(store.Key) error{
		"Delete": func(k store.Key) error { return s.Delete(t.Context(), k) },
		"Remove": func(k store.Key) error { return s.Remove(t.Context(), k, 7) },
		"RemoveAll": func(k store.Key) error {
			addLong(t, s, store.Key{Memory: "m", Session: "short"}, 1)
			n, err := s.RemoveAll(t.Context(), "m", []store.SessionHead{
				{Session: k.Session, Head: store.Head{Version: 7, State: store.State{Last: long}}}, {Session: "short", Head: store.Head{Version: 7}}})
			if n != 2 && err == nil {
				t.Errorf("%d sessions were deleted", n)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := store.Key{Memory: "m", Session: "s"}
			addLong(t, s, key, long)
			testkit.Must(t, remove(key))
			wantRows(t, s, rows)
		})
	}
}

// TestRemove_Killed: a process that is killed after the first transaction of a deletion has
// deleted the session. A new one with its id has nothing of it, and another process
// deletes what is left.
func TestRemove_Killed(t *testing.T) {
	const long, rows = sqlite.RemovedRows + 1, 4 + 6 // of other, and of a new session
	key, other := store.Key{Memory: "m", Session: "s"}, store.Key{Memory: "", Session: "other"}
	for name, finish := range map[string]func(t *testing.T, s *sqlite.Store) error{
		"another deletion": func(t *testing.T, s *sqlite.Store) error {
			err := s.Delete(t.Context(), store.Key{Memory: "m", Session: "unknown"})
			wantRows(t, s, rows)
			return errors.Join(err, s.Close())
		},
		"close": func(_ *testing.T, s *sqlite.Store) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.db")
			s := open(t, path)
			addLong(t, s, other, 1)
			addLong(t, s, key, long)
			testkit.Must(t, s.BeginDelete(t.Context(), key))
			head, err := s.Head(t.Context(), key)
			if head.Version != 0 || err != nil {
				t.Errorf("the deleted session has the head %+v, %v", head, err)
			}
			for _, mem := range []string{"m", ""} {
				for l, err := range s.Sessions(t.Context(), mem) {
					if l.Session != other.Session || err != nil {
						t.Errorf("memory %q has session %s, %v", mem, l.Session, err)
					}
				}
			}
			addLong(t, s, key, 2)
			n := 0
			for e, err := range s.Entries(t.Context(), key, store.Query{}) {
				testkit.Must(t, err)
				if n++; e.Message.Text() != fmt.Sprint(n-1) {
					t.Errorf("entry %d is %s", n, e.Message.Text())
				}
			}
			if n != 2 {
				t.Errorf("the new session has %d messages", n)
			}
			testkit.Must(t, finish(t, s))
			after := open(t, path)
			defer func() { testkit.Must(t, after.Close()) }()
			wantRows(t, after, rows)
		})
	}
}

// TestRemove_Concurrent: sessions whose deletions overlap with new sessions, which get their
// numbers again, keep what they have.
func TestRemove_Concurrent(t *testing.T) {
	testkit.SkipWithRace(t) // a transaction then takes longer than the others wait for the lock
	path := filepath.Join(t.TempDir(), "memory.db")
	stores := []*sqlite.Store{open(t, path), open(t, path)} // as in two processes
	var group sync.WaitGroup
	for i := range 4 {
		s := stores[i%len(stores)]
		group.Go(func() {
			key := store.Key{Memory: "m", Session: fmt.Sprint(i)}
			for range 3 {
				addLong(t, s, key, sqlite.RemovedRows+1)
				n := 0
				for _, err := range s.Entries(t.Context(), key, store.Query{}) {
					if err != nil {
						t.Error(err)
					}
					n++
				}
				if n != sqlite.RemovedRows+1 {
					t.Errorf("%d messages", n)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	wantRows(t, stores[0], 0)
	for _, s := range stores {
		testkit.Must(t, s.Close())
	}
}
