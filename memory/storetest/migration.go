package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// old returns the content of the fixture of an earlier version of a store:
// session s of memory m, with three messages of which two were flushed.
func old() dumped {
	when := time.Date(2026, 11, 1, 22, 33, 56, 342116000, time.UTC)
	say := func(seq, turn int64, tokens int, id string, role chat.Role, text string) *store.Entry {
		return &store.Entry{Seq: seq, Turn: turn, Tokens: tokens, Time: when,
			Message: chat.Message{ID: id, Role: role, Blocks: []chat.Block{{Type: "text", Text: text}}}}
	}
	return dumped{
		Head: store.Head{Version: 2075817852832162630,
			State:  store.State{Last: 3, Turns: 2, First: 3, InWindow: 1, Tokens: 5, Flushes: 1, LastSaid: when},
			Values: map[string][]byte{"system": []byte("Be kind.")}},
		Entries: []*store.Entry{say(1, 1, 9, "a", chat.User, "old question"), say(2, 1, 7, "b", chat.Assistant, "old answer"), say(3, 2, 5, "c", chat.User, "and now?")},
		Events: []store.Event{{Kind: store.EventFlush, Turn: 2, From: 1, To: 2, Messages: 2, Tokens: 16, Rule: "flush",
			Before: 21, Limit: 20, Unit: store.InTokens, Reason: "over", Time: when}},
	}
}

// RunMigration checks that a store reads what an earlier version of it wrote, and
// continues it. place returns the address of a fresh copy of the fixture that
// old describes. As for RunProcesses, TestMain must call WriterMain.
func RunMigration(t *testing.T, place func(t *testing.T) string, open func(t *testing.T, place string) store.Store) {
	key := store.Key{Memory: "m", Session: "s"}
	same := func(t *testing.T, s store.Store) {
		t.Helper()
		if d := cmp.Diff(old(), dump(t, s, key)); d != "" {
			t.Errorf("the content of the earlier version differs: %s", d)
		}
	}
	t.Run("read", func(t *testing.T) {
		s := open(t, place(t))
		defer func() { testkit.Must(t, s.Close()) }()
		same(t, s)
		if got := collect(t, s.Sessions(t.Context(), "m")); len(got) != 1 || got[0].Session != "s" || got[0].Head.State != old().Head.State {
			t.Errorf("listed %+v", got)
		}
	})
	t.Run("continue", func(t *testing.T) { continueOld(t, open(t, place(t)), key) })
	t.Run("replace", func(t *testing.T) { replaceOld(t, open(t, place(t)), key) })
	t.Run("two processes at once", func(t *testing.T) {
		where := place(t)
		twoProcesses(t, where, open)
		s := open(t, where)
		defer func() { testkit.Must(t, s.Close()) }()
		same(t, s)
	})
	t.Run("many at once", func(t *testing.T) {
		where := place(t)
		const writers = 8
		inParallel(writers, func(i int) {
			s := open(t, where)
			if err := newMemory(t, s).Append(t.Context(), "s", chat.Text(chat.User, fmt.Sprint("new ", i))); err != nil {
				t.Error(err)
			}
			testkit.Must(t, s.Close())
		})
		s := open(t, where)
		defer func() { testkit.Must(t, s.Close()) }()
		if got := entries(t, s, key, store.Query{}); len(got) != 3+writers || !cmp.Equal(got[:3], old().Entries) {
			t.Errorf("%d messages, want the 3 old ones and %d", len(got), writers)
		}
	})
}

// continueOld checks that an old session can be continued, knows the ids of its
// messages, and can be deleted.
func continueOld(t *testing.T, s store.Store, key store.Key) {
	defer func() { testkit.Must(t, s.Close()) }()
	m := newMemory(t, s)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Message{ID: "a", Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "old question"}}}))
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.Assistant, "new answer")))
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	var texts []string
	for _, e := range w.Entries {
		texts = append(texts, e.Message.Text())
	}
	if got := strings.Join(texts, ", "); got != "and now?, new answer" {
		t.Errorf("the window is %s", got)
	}
	stale := add(old().Head, "late")
	if err := s.Apply(t.Context(), key, stale); err == nil {
		t.Error("a change of an old version was applied")
	}
	testkit.Must(t, m.Clear(t.Context(), "s"))
	if d := cmp.Diff(dumped{}, dump(t, s, key)); d != "" {
		t.Errorf("left over: %s", d)
	}
	for l, err := range s.Sessions(t.Context(), "m") {
		t.Errorf("a session that was deleted is listed: %v, %v", l, err)
	}
}
