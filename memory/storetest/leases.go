package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// stoppableStore is a store whose process can be stopped: then it makes no calls.
type stoppableStore struct {
	store.Store
	stopped atomic.Bool
}

func (s *stoppableStore) check() error {
	if s.stopped.Load() {
		return &store.Error{Location: "test", Problem: store.Unavailable, Message: "stopped"}
	}
	return nil
}

func (s *stoppableStore) Head(ctx context.Context, key store.Key) (store.Head, error) {
	if err := s.check(); err != nil {
		return store.Head{}, err
	}
	return s.Store.Head(ctx, key)
}

func (s *stoppableStore) Apply(ctx context.Context, key store.Key, c store.Change) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Store.Apply(ctx, key, c)
}

func (s *stoppableStore) Time(ctx context.Context) (time.Time, error) {
	return store.TimeOf(ctx, s.Store)
}

// withTurns returns a memory, as another process would have it, that treats concurrent
// turns by a policy.
func withTurns(t *testing.T, s store.Store, turns memory.TurnPolicy, lease time.Duration) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Policy: "unbounded", Counter: runes{}, Turns: turns, Lease: lease}, s)
	testkit.Must(t, err)
	return m
}

// beginWith returns a turn with a question.
func beginWith(t *testing.T, m *memory.Memory, session, text string) *memory.Turn {
	t.Helper()
	turn, err := m.Begin(t.Context(), session)
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, text)))
	return turn
}

// rejects checks that one of two processes has a session at a time, and that the session
// of a stopped process is free after its lease.
func rejects(t *testing.T, s store.Store) {
	first := &stoppableStore{Store: s}
	here, there := withTurns(t, first, memory.Reject, 3*time.Second), withTurns(t, s, memory.Reject, time.Minute)
	for _, session := range []string{"new", "old"} {
		if session == "old" {
			testkit.Must(t, there.Append(t.Context(), session, chat.Text(chat.User, "before")))
		}
		turn := beginWith(t, here, session, "first")
		if session == "old" {
			time.Sleep(3200 * time.Millisecond) // the lease is renewed
		}
		var busy *memory.BusyError
		if _, err := there.Begin(t.Context(), session); !errors.As(err, &busy) {
			t.Errorf("%s: a second turn got %v, want a BusyError", session, err)
		}
		testkit.Must(t, turn.Commit(t.Context()))
		testkit.Must(t, beginWith(t, there, session, "second").Commit(t.Context()))
		testkit.Must(t, beginWith(t, here, session, "third").Commit(t.Context()))
		turn, err := here.Begin(t.Context(), session)
		testkit.Must(t, err)
		testkit.Must(t, turn.Abort(t.Context(), nil))
	}
	dead := beginWith(t, here, "old", "never")
	first.stopped.Store(true)
	var next *memory.Turn
	for began := time.Now(); next == nil && time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		next, _ = there.Begin(t.Context(), "old")
	}
	if next == nil {
		t.Fatal("the session of a stopped process stays busy")
	}
	first.stopped.Store(false)
	var lost *memory.InterruptedError
	if err := dead.Commit(t.Context()); !errors.As(err, &lost) {
		t.Errorf("a turn without its lease committed: %v", err)
	}
	testkit.Must(t, dead.Abort(t.Context(), errors.New("too late")))
	testkit.Must(t, next.Add(chat.Text(chat.User, "fourth")))
	testkit.Must(t, next.Commit(t.Context()))
	wantWindow(t, there, "new", "first second third")
	wantWindow(t, there, "old", "before first second third fourth")
}

// waits checks that turns with a lease wait for turns of other processes, and that a repeated turn
// takes over at once.
func waits(t *testing.T, s store.Store) {
	first := &stoppableStore{Store: s}
	here, there := withTurns(t, first, memory.Queue, 4*time.Second), withTurns(t, s, memory.Queue, time.Minute)
	begin := func(m *memory.Memory, work, text string, lost func()) *memory.Turn {
		turn, err := m.Begin(memory.WithLease(t.Context(), work, lost), "w")
		testkit.Must(t, err)
		testkit.Must(t, turn.Add(chat.Text(chat.User, text)))
		return turn
	}
	never := func() { t.Error("a lease was lost") }
	turn := begin(here, "one", "first", never)
	began := make(chan *memory.Turn)
	go func() {
		next, _ := there.Begin(memory.WithLease(t.Context(), "two", never), "w")
		began <- next
	}()
	select {
	case <-began:
		t.Fatal("a turn does not wait for that of another process")
	case <-time.After(300 * time.Millisecond):
	}
	testkit.Must(t, turn.Commit(t.Context()))
	next := <-began
	testkit.Must(t, next.Add(chat.Text(chat.User, "second")))
	testkit.Must(t, next.Commit(t.Context()))

	var lost atomic.Int32
	former := begin(here, "three", "third", func() { lost.Add(1) })
	again := begin(there, "three", "third", never)
	if err := former.Commit(t.Context()); !errors.Is(err, memory.ErrSuspended) || lost.Load() == 0 {
		t.Errorf("a turn whose work another process repeats committed: %v", err)
	}
	testkit.Must(t, former.Abort(t.Context(), memory.ErrSuspended))
	testkit.Must(t, again.Commit(t.Context()))

	left, err := withTurns(t, first, memory.Queue, time.Second).Begin(memory.WithLease(t.Context(), "left", never), "left")
	testkit.Must(t, err)
	time.Sleep(3200 * time.Millisecond) // the lease is renewed
	testkit.Must(t, left.Abort(t.Context(), memory.ErrSuspended))
	if head, err := s.Head(t.Context(), memory.Key{Memory: "m", Session: "left"}); err != nil || head.Version != 0 {
		t.Errorf("a turn that left nothing keeps its lease: %+v, %v", head, err)
	}

	dead := begin(withTurns(t, first, memory.Queue, time.Second), "four", "never", func() {})
	first.stopped.Store(true)
	testkit.Must(t, begin(there, "five", "fourth", never).Commit(t.Context())) // after the lease
	first.stopped.Store(false)
	if err := dead.Commit(t.Context()); !errors.As(err, new(*memory.InterruptedError)) {
		t.Errorf("a turn without its lease committed: %v", err)
	}
	testkit.Must(t, dead.Abort(t.Context(), memory.ErrSuspended))
	wantWindow(t, there, "w", "first second third fourth")
	for e, err := range there.History(t.Context(), "w") {
		testkit.Must(t, err)
		if e.Status == store.Failed {
			t.Errorf("the history has the failed message %q", e.Message.Text())
		}
	}
}

// interrupts checks that a turn ends the older one of another process, which cannot commit.
func interrupts(t *testing.T, s store.Store) {
	here, there := withTurns(t, s, memory.Interrupt, 300*time.Millisecond), withTurns(t, s, memory.Interrupt, time.Minute)
	older := beginWith(t, here, "s", "first")
	newer := beginWith(t, there, "s", "second")
	var lost *memory.InterruptedError
	select {
	case <-older.Context().Done():
		if err := context.Cause(older.Context()); !errors.As(err, &lost) {
			t.Errorf("the older turn ended by %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the older turn does not notice the newer one")
	}
	if err := older.Commit(t.Context()); !errors.As(err, &lost) {
		t.Errorf("the older turn committed: %v", err)
	}
	testkit.Must(t, older.Abort(t.Context(), context.Cause(older.Context())))
	unaware := newer
	newest := beginWith(t, here, "s", "third")
	if err := unaware.Commit(t.Context()); !errors.As(err, &lost) { // before it could notice
		t.Errorf("a turn without its lease committed: %v", err)
	}
	testkit.Must(t, newest.Commit(t.Context()))
	testkit.Must(t, unaware.Abort(t.Context(), lost))
	wantWindow(t, there, "s", "third")
	empty, err := here.Begin(t.Context(), "untouched")
	testkit.Must(t, err)
	testkit.Must(t, empty.Abort(t.Context(), nil))
	if head, err := s.Head(t.Context(), store.Key{Memory: "m", Session: "untouched"}); err != nil || head.Version != 0 {
		t.Errorf("an aborted turn left %+v, %v", head, err)
	}
}

func wantWindow(t *testing.T, m *memory.Memory, session, want string) {
	t.Helper()
	w, err := m.Window(t.Context(), session)
	testkit.Must(t, err)
	got := ""
	for i, e := range w.Entries {
		if i > 0 {
			got += " "
		}
		got += e.Message.Text()
	}
	if got != want {
		t.Errorf("session %s: the window is %q, want %q", session, got, want)
	}
}
