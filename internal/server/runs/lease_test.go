package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// A client that follows the run of another process learns that it was deleted.
func TestManager_AttachedRunIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := memory.NewInProcess()
		app := open(t, memory.NewInProcess())
		m, other := runs.NewManager(runs.Options{State: in(state)}), runs.NewManager(runs.Options{State: in(state)})
		defer stop(t, m)
		defer stop(t, other)
		begin(t, m, app)
		r, err := other.Attach(t.Context(), app, "ada", "run_1")
		testkit.Must(t, err)
		deleted, err := runs.Erase(t.Context(), in(state)(), func(owner, _ string) bool { return owner == "ada" })
		if len(deleted) != 1 || err != nil {
			t.Fatalf("deleted %v, %v", deleted, err)
		}
		events := await(t, r, runs.RunFinished)
		if got := events[len(events)-1]; got.Text != string(runs.Failed) || got.Error != "the run was deleted" {
			t.Errorf("the run ended with %+v", got)
		}
		own, err := m.Find(t.Context(), app, "ada", "run_1")
		testkit.Must(t, err)
		testkit.Must(t, own.Wait(t.Context()))
		if n := count(t, state); own.State().Status != runs.Failed || n != 0 {
			t.Errorf("the process of the run: %s, and %d stored runs", own.State().Status, n)
		}
	})
}

// skewedClock is the view that a process has of a store that several machines share, if the
// clock of its machine is wrong by skew: the times of others are wrong by as much for it.
type skewedClock struct {
	memory.Store
	skew time.Duration
}

// Time returns the time of the store, and not that of the machine.
func (s skewedClock) Time(context.Context) (time.Time, error) { return time.Now().Add(s.skew), nil }

// The leases of runs end by the clock of the store: servers whose own clocks differ do not take
// runs from each other. Here the clock of the store is an hour ahead of that of the machine, so
// that a lease by the clock of the machine would have ended.
func TestManager_LeaseByClockOfStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := memory.NewInProcess()
		app := open(t, memory.NewInProcess())
		m := runs.NewManager(runs.Options{State: in(skewedClock{state, time.Hour})})
		defer stop(t, m)
		begin(t, m, app)
		head, err := state.Head(t.Context(), memory.Key{Memory: storedRunsID, Session: "run_1"})
		testkit.Must(t, err)
		var lease struct{ Until time.Time }
		testkit.Must(t, json.Unmarshal(head.Values["lease"], &lease))
		if got := time.Until(lease.Until); got < time.Hour || got > time.Hour+15*time.Second {
			t.Errorf("the lease ends in %s", got)
		}
		next := runs.NewManager(runs.Options{State: in(skewedClock{state, time.Hour})})
		defer stop(t, next)
		if n, err := next.Resume(t.Context(), app); n != 0 || err != nil {
			t.Errorf("resumed %d runs of a live process, %v", n, err)
		}
	})
}

// distantStore is a store whose changes take time.
type distantStore struct {
	memory.Store
	delay atomic.Int64
}

func (s *distantStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	time.Sleep(time.Duration(s.delay.Load()))
	return s.Store.Apply(ctx, key, c)
}

// Many runs that wait for their clients keep their leases, also if a call of the store takes
// longer than usual.
func TestManager_ManyWaitingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := memory.NewInProcess()
		app := open(t, memory.NewInProcess())
		distant := &distantStore{Store: state}
		m, next := runs.NewManager(runs.Options{State: in(distant)}), runs.NewManager(runs.Options{State: in(state)})
		defer stop(t, m)
		defer stop(t, next)
		for i := range 500 {
			start := talk(t, app)
			start.ID, start.Session = fmt.Sprint("run_", i), fmt.Sprint("ada/", i)
			r, err := m.Begin(t.Context(), start)
			testkit.Must(t, err)
			await(t, r, runs.RequestOpened)
		}
		distant.delay.Store(int64(50 * time.Millisecond))
		for range 3 {
			time.Sleep(20 * time.Second)
			if n, err := next.Resume(t.Context(), app); n != 0 || err != nil {
				t.Errorf("another server took %d runs, %v", n, err)
			}
		}
		distant.delay.Store(0)
		time.Sleep(time.Second) // the changes that have begun end
	})
}

// gatedStore delays the first change that sets a value with a prefix until open is closed.
type gatedStore struct {
	memory.Store
	prefix  string
	once    sync.Once
	reached chan struct{} // closed when the change is there
	open    chan struct{}
}

func (s *gatedStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	for name := range c.Values {
		if key.Memory == storedRunsID && strings.HasPrefix(name, s.prefix) {
			s.once.Do(func() {
				close(s.reached)
				<-s.open
			})
		}
	}
	return s.Store.Apply(ctx, key, c)
}

// A process that was stopped for longer than its lease changes nothing of the run that another
// one has continued and ended meanwhile: neither recorded calls, nor the state.
func TestManager_StoppedProcess(t *testing.T) {
	for _, prefix := range []string{"call:", "state"} {
		state := &gatedStore{Store: memory.NewInProcess(), prefix: prefix, reached: make(chan struct{}), open: make(chan struct{})}
		app := open(t, memory.NewInProcess())
		m := runs.NewManager(runs.Options{State: in(state)})
		r, err := m.Begin(t.Context(), talk(t, app))
		testkit.Must(t, err)
		<-state.reached
		key := memory.Key{Memory: storedRunsID, Session: "run_1"}
		head, err := state.Head(t.Context(), key)
		testkit.Must(t, err)
		other := store.Change{Version: head.Version, Next: store.NextVersion(head.Version), State: head.State, Values: map[string][]byte{
			"lease": []byte(`{"owner":"other","until":"2999-01-01T00:00:00Z"}`), "state": []byte(`{"status":"succeeded"}`)}}
		testkit.Must(t, state.Store.Apply(t.Context(), key, other))
		close(state.open)
		testkit.Must(t, r.Wait(t.Context()))
		if got := r.State().Status; got != runs.Suspended {
			t.Errorf("%s: the stopped process ended the run as %s", prefix, got)
		}
		head, err = state.Head(t.Context(), key)
		testkit.Must(t, err)
		if got := string(head.Values["state"]); head.Version != other.Next || got != `{"status":"succeeded"}` {
			t.Errorf("%s: the stopped process changed the run: %s", prefix, got)
		}
		stop(t, m)
	}
}
