package memory_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestFork_Errors(t *testing.T) {
	m := newMemory(t, memory.NewInProcess())
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q")))
	testkit.Must(t, m.Append(t.Context(), "t", chat.Text(chat.User, "q")))
	for _, c := range []struct {
		from, to string
		turn     int64
		want     string
	}{
		{"s", "t", 0, `memory chat_memory: session "t" exists already`},
		{"s", "s", 1, `memory chat_memory: session "s" exists already`},
		{"s", "new", 2, `memory chat_memory: session "s" has no turn 2: its turns are 1 to 1`},
		{"s", "new", -1, `memory chat_memory: session "s" has no turn -1: its turns are 1 to 1`},
		{"none", "new", 0, `memory chat_memory: session "none" has no turns yet`},
	} {
		err := m.Fork(t.Context(), c.from, c.to, c.turn)
		var unknown *memory.TurnError
		var exists *memory.SessionExistsError
		if err == nil || err.Error() != c.want || !errors.As(err, &unknown) && !errors.As(err, &exists) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	if head, err := m.Head(t.Context(), "new"); err != nil || head.Version != 0 {
		t.Errorf("a session was created: %v, %v", head, err)
	}
}

// TestFork_Expiry checks that a fork lives as long as a new session, and may have the
// id of an expired one.
func TestFork_Expiry(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	m, err := memory.New(memory.Config{ID: "m", Counter: runes{}, TTL: time.Hour, Now: func() time.Time { return now }}, memory.NewInProcess())
	testkit.Must(t, err)
	testkit.Must(t, m.Append(t.Context(), "old", chat.Text(chat.User, "q")))
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q1")))
	now = now.Add(50 * time.Minute)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "q2")))
	now = now.Add(20 * time.Minute)
	testkit.Must(t, m.Fork(t.Context(), "s", "old", 1))
	now = now.Add(50 * time.Minute)
	if got := windowTexts(t, m, "old"); got != "user:q1" {
		t.Errorf("the window of the fork is %q", got)
	}
	if err := m.Fork(t.Context(), "s", "new", 0); err == nil {
		t.Error("an expired session was forked")
	}
}

// TestBranches_Concurrent checks that turns of two processes are neither lost nor
// return while others rewind and fork the session.
func TestBranches_Concurrent(t *testing.T) {
	backend := memory.NewInProcess()
	var processes []*memory.Memory
	for range 2 {
		m, err := memory.New(memory.Config{ID: "m", Policy: spec.PolicyUnbounded, Counter: runes{}}, backend)
		testkit.Must(t, err)
		processes = append(processes, m)
	}
	testkit.Must(t, processes[0].Append(t.Context(), "s", chat.Text(chat.User, "first")))
	const turns = 60
	var rewound atomic.Bool // whether a rewind took turns away: all may come before the third turn
	var all sync.WaitGroup
	for p, m := range processes {
		all.Go(func() {
			for n := range turns {
				if err := m.Append(t.Context(), "s", chat.Text(chat.User, fmt.Sprint(p, "-", n))); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for n := range 15 {
				head, err := m.Head(t.Context(), "s")
				if err == nil {
					err = m.Rewind(t.Context(), "s", max(head.State.Turns-3, 2))
				}
				if unknown := (*memory.TurnError)(nil); err != nil && !errors.As(err, &unknown) {
					t.Error(err)
				}
				if err == nil && head.State.Turns > 2 {
					rewound.Store(true)
				}
				if err := m.Fork(t.Context(), "s", fmt.Sprint("fork", p, "-", n), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	seen, live := map[string]int{}, []string{}
	for e, err := range processes[0].History(t.Context(), "s") {
		testkit.Must(t, err)
		seen[e.Message.Text()]++
		if e.Status == store.InWindow {
			live = append(live, e.Message.Text())
		}
	}
	if len(seen) != 2*turns+1 || rewound.Load() && len(live) == len(seen) {
		t.Errorf("%d messages, %d in the window", len(seen), len(live))
	}
	for _, m := range processes {
		var window []string
		w, err := m.Window(t.Context(), "s")
		testkit.Must(t, err)
		for _, e := range w.Entries {
			window = append(window, e.Message.Text())
		}
		if d := gocmp.Diff(live, window); d != "" {
			t.Errorf("the window: %s", d)
		}
	}
}
