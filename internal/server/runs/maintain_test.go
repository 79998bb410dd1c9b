package runs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
)

// brokenStore is a store whose changes fail with err once it is set. It can also delay
// the first change until the channel held is closed.
type brokenStore struct {
	memory.Store
	held chan struct{}

	mu  sync.Mutex
	err error
}

func (s *brokenStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *brokenStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *brokenStore) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	if s.held != nil {
		<-s.held
	}
	if err := s.failure(); err != nil {
		return err
	}
	return s.Store.Apply(ctx, key, c)
}

func (s *brokenStore) Head(ctx context.Context, key memory.Key) (memory.Head, error) {
	if err := s.failure(); err != nil {
		return memory.Head{}, err
	}
	return s.Store.Head(ctx, key)
}

var errDown = &memory.StoreError{Location: "test", Problem: store.Unavailable, Message: "connection refused"}

// stop ends a manager with its runs.
func stop(t *testing.T, m *runs.Manager) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cancel()
	_ = m.Shutdown(ctx)
}

// begin starts the run of talk, which waits for an approval.
func begin(t *testing.T, m *runs.Manager, app *runtime.App) *runs.Run {
	t.Helper()
	r, err := m.Begin(t.Context(), talk(t, app))
	testkit.Must(t, err)
	await(t, r, runs.RequestOpened)
	return r
}

func stored(t *testing.T, m *runs.Manager, app *runtime.App) *runs.Run {
	t.Helper()
	r, err := m.Find(t.Context(), app, "ada", "run_1")
	testkit.Must(t, err)
	return r
}

// The store keeps a run for Options.Expire after its end; then the manager of a running server
// deletes it, without being called.
func TestManager_DeletesExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := memory.NewInProcess()
		app := open(t, memory.NewInProcess())
		m := runs.NewManager(runs.Options{State: in(state), Expire: 3 * time.Hour, Retain: time.Minute})
		defer stop(t, m)
		r := begin(t, m, app)
		time.Sleep(5*time.Hour + time.Minute)
		if got := stored(t, m, app); got == nil || got.State().Status != runs.Waiting {
			t.Fatalf("a waiting run expired: %+v", got)
		}
		testkit.Must(t, m.Cancel(t.Context(), r))
		testkit.Must(t, r.Wait(t.Context()))
		if n := count(t, state); n != 1 {
			t.Errorf("%d stored runs before the next search", n)
		}
		time.Sleep(2 * time.Hour)
		if n := count(t, state); n != 1 {
			t.Errorf("%d stored runs two hours after the end", n)
		}
		time.Sleep(2 * time.Hour)
		if n := count(t, state); n != 0 {
			t.Errorf("%d stored runs after it", n)
		}
		if got := stored(t, m, app); got != nil {
			t.Errorf("the run can still be found: %+v", got.State())
		}
	})
}

// The id of a run that has expired, and is not yet deleted, is free: the next run with it is stored, too.
func TestManager_ExpiredID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := memory.NewInProcess()
		app := open(t, memory.NewInProcess())
		m, other := runs.NewManager(runs.Options{State: in(state)}), runs.NewManager(runs.Options{State: in(state)})
		defer stop(t, m)
		defer stop(t, other)
		former := begin(t, m, app)
		testkit.Must(t, m.Cancel(t.Context(), former))
		testkit.Must(t, former.Wait(t.Context()))
		time.Sleep(24*time.Hour + 30*time.Minute)
		start := talk(t, app)
		start.Digest = "2"
		r, err := m.Begin(t.Context(), start)
		testkit.Must(t, err)
		await(t, r, runs.RequestOpened)
		if again, err := other.Begin(t.Context(), start); err != nil || again.State().Status != runs.Waiting || other.IsLocal(again) {
			t.Errorf("another server begins the run again: %v", err)
		}
	})
}

// in returns the records of the application of the tests in a store.
func in(s memory.Store) func() store.Application {
	app := store.NewApplication(s, "shop")
	return func() store.Application { return app }
}

// storedRunsID is the id under which a store lists the runs of the application.
var storedRunsID = store.NewApplication(nil, "shop").Records(appstate.Runs).Memory()

// count returns the number of stored runs.
func count(t *testing.T, backend memory.Store) int {
	t.Helper()
	list, err := store.ListSessions(t.Context(), backend, storedRunsID, store.SessionQuery{})
	testkit.Must(t, err)
	return len(list)
}

// Clean reads only what is old, page by page.
func TestManager_CleanPages(t *testing.T) {
	state := memory.NewInProcess()
	m := runs.NewManager(runs.Options{})
	defer stop(t, m)
	testkit.Must(t, m.Clean(t.Context())) // there is no store
	for i := range 600 {
		age := time.Duration(i%2) * 48 * time.Hour
		key := memory.Key{Memory: storedRunsID, Session: "run_" + string(rune('a'+i/26)) + string(rune('a'+i%26))}
		testkit.Must(t, state.Apply(t.Context(), key, store.Change{Next: store.NextVersion(0), State: store.State{LastSaid: time.Now().Add(-age)}}))
	}
	m2 := runs.NewManager(runs.Options{State: in(state)})
	defer stop(t, m2)
	testkit.Must(t, m2.Clean(t.Context()))
	if n := count(t, state); n != 300 {
		t.Errorf("%d of 300 recent runs are left", n)
	}
}

// While its process lives, a run keeps its lease; after the process has stopped without
// notice, another one takes the run when the lease has ended.
func TestManager_Lease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := &brokenStore{Store: memory.NewInProcess()}
		app := open(t, memory.NewInProcess())
		lost := runs.NewManager(runs.Options{State: in(state)})
		begin(t, lost, app)
		next := runs.NewManager(runs.Options{State: in(state.Store)})
		defer stop(t, next)
		time.Sleep(time.Minute)
		if n, err := next.Resume(t.Context(), app); n != 0 || err != nil {
			t.Errorf("resumed %d runs of a live process, %v", n, err)
		}
		state.fail(errDown) // the first process no longer reaches the store
		time.Sleep(10 * time.Second)
		if n, err := next.Resume(t.Context(), app); n != 0 || err != nil {
			t.Errorf("resumed %d runs before the lease ended, %v", n, err)
		}
		time.Sleep(10 * time.Second)
		if n, err := next.Resume(t.Context(), app); n != 1 || err != nil {
			t.Errorf("resumed %d runs after the lease, %v", n, err)
		}
		if got := stored(t, next, app); got == nil || !next.IsLocal(got) {
			t.Errorf("the run is not here: %+v", got)
		}
		stop(t, lost)
	})
}

// A process that did not reach the store for a while gives up the run that another one has
// taken meanwhile, also if its client answers it there: nothing runs twice.
func TestManager_LostLease(t *testing.T) {
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			state := &brokenStore{Store: memory.NewInProcess()}
			former, app := open(t, memory.NewInProcess()), open(t, memory.NewInProcess())
			lost, next := runs.NewManager(runs.Options{State: in(state)}), runs.NewManager(runs.Options{State: in(state.Store)})
			defer stop(t, lost)
			defer stop(t, next)
			r := begin(t, lost, former)
			state.fail(errDown)
			time.Sleep(20 * time.Second)
			if n, err := next.Resume(t.Context(), app); n != 1 || err != nil {
				t.Fatalf("resumed %d runs, %v", n, err)
			}
			state.fail(nil)
			a := &runs.Answer{ID: r.State().Pending[0].ID, Approved: yes()}
			if answered {
				testkit.Must(t, lost.Answer(asOwner(t, r), r, a))
			}
			testkit.Must(t, r.Wait(t.Context()))
			if got := r.State().Status; got != runs.Suspended {
				t.Errorf("the former process ended the run as %s", got)
			}
			time.Sleep(10 * time.Second)
			if n, err := lost.Resume(t.Context(), former); n != 0 || err != nil {
				t.Errorf("it took the run back: %d, %v", n, err)
			}
			if !answered {
				testkit.Must(t, next.Answer(asOwner(t, r), stored(t, next, app), a))
			}
			events := await(t, stored(t, next, app), runs.RunFinished)
			if got := events[len(events)-1]; got.Text != string(runs.Succeeded) {
				t.Errorf("the run ended with %+v", got)
			}
		})
	}
}

// A run that cannot be stored does not begin, and a second request with its key does not
// get it.
func TestManager_StoreFails(t *testing.T) {
	state := &brokenStore{Store: memory.NewInProcess(), held: make(chan struct{})}
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{State: in(state)})
	defer stop(t, m)
	failures := make(chan error)
	for range 2 {
		go func() {
			_, err := m.Begin(t.Context(), talk(t, app))
			failures <- err
		}()
	}
	state.fail(errDown)
	close(state.held)
	for range 2 {
		if err := <-failures; !errors.Is(err, errDown) {
			t.Errorf("Begin: %v", err)
		}
	}
	if n := m.Active(); n != 0 {
		t.Errorf("%d active runs", n)
	}
	if r, err := m.Find(t.Context(), app, "ada", "run_1"); r != nil || !errors.Is(err, errDown) {
		t.Errorf("Find: %v, %v", r, err)
	}
	if _, err := m.Resume(t.Context(), app); err != nil {
		t.Errorf("Resume with nothing unfinished: %v", err)
	}
	state.fail(nil)
	begin(t, m, app)
}

// Requests with the same key at the same time start one run.
func TestManager_BeginTogether(t *testing.T) {
	state := memory.NewInProcess()
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{State: in(state)})
	defer stop(t, m)
	found := make(chan *runs.Run)
	for range 8 {
		go func() {
			r, err := m.Begin(t.Context(), talk(t, app))
			if err != nil {
				t.Error(err)
			}
			found <- r
		}()
	}
	first := <-found
	for range 7 {
		if r := <-found; r != first {
			t.Errorf("another run: %+v", r)
		}
	}
	if m.Active() != 1 {
		t.Errorf("%d active runs", m.Active())
	}
}

// A server that shuts down refuses runs, and one at its limit does.
func TestManager_Refuses(t *testing.T) {
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{MaxActive: 1, MaxHeld: 1})
	begin(t, m, app)
	other := talk(t, app)
	other.ID = "run_2"
	if _, err := m.Begin(t.Context(), other); !errors.Is(err, runs.ErrBusy) {
		t.Errorf("second run: %v", err)
	}
	stop(t, m)
	if _, err := m.Begin(t.Context(), other); !errors.Is(err, runs.ErrClosed) {
		t.Errorf("after Shutdown: %v", err)
	}
}

// Ended runs are kept until they are too old, or have too many events together.
func TestManager_Retain(t *testing.T) {
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{MaxEvents: 1})
	defer stop(t, m)
	r := begin(t, m, app)
	testkit.Must(t, m.Cancel(t.Context(), r))
	testkit.Must(t, m.Shutdown(t.Context()))
	if got := stored(t, m, app); got != nil {
		t.Errorf("the run was kept: %+v", got.State())
	}
}

// TestAnswer_WhileRunIsRepeated checks that a request can be answered at once after
// another process took the run, before the run has come to the request again.
func TestAnswer_WhileRunIsRepeated(t *testing.T) {
	for range 30 {
		store, state := memory.NewInProcess(), memory.NewInProcess()
		first := runs.NewManager(runs.Options{State: in(state)})
		id := begin(t, first, open(t, store)).State().Pending[0].ID
		testkit.Must(t, first.Shutdown(t.Context()))
		app, second := open(t, store), runs.NewManager(runs.Options{State: in(state)})
		if n, err := second.Resume(t.Context(), app); n != 1 || err != nil {
			t.Fatalf("resumed %d, %v", n, err)
		}
		r := stored(t, second, app)
		testkit.Must(t, second.Answer(asOwner(t, r), r, &runs.Answer{ID: id, Approved: yes()}))
		events := await(t, r, runs.RunFinished)
		if got := events[len(events)-1]; got.Text != string(runs.Succeeded) || strings.Count(typesOf(events), string(runs.RequestAnswered)) != 1 {
			t.Errorf("ended with %+v: %s", got, typesOf(events))
		}
		if err := second.Answer(asOwner(t, r), r, &runs.Answer{ID: id, Approved: yes()}); !errors.Is(err, runs.ErrAnswered) {
			t.Errorf("second answer: %v", err)
		}
		testkit.Must(t, second.Shutdown(t.Context()))
	}
}

// waitingEngine is an Engine whose runs do not end.
type waitingEngine struct{}

func (waitingEngine) Run(ctx context.Context, _ *runs.Job) (func(), error) {
	<-ctx.Done()
	return func() {}, context.Cause(ctx)
}

// Servers with different engines that share a store do not continue each other's runs.
func TestManager_OtherEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, app := memory.NewInProcess(), open(t, memory.NewInProcess())
		first := runs.NewManager(runs.Options{State: in(state), Engine: waitingEngine{}})
		_, err := first.Begin(t.Context(), talk(t, app))
		testkit.Must(t, err)
		stop(t, first)
		time.Sleep(time.Minute) // its lease ends
		for _, c := range []struct {
			engine runs.Engine
			want   int
		}{{nil, 0}, {waitingEngine{}, 1}} {
			m := runs.NewManager(runs.Options{State: in(state), Engine: c.engine})
			defer stop(t, m)
			if n, err := m.Resume(t.Context(), app); n != c.want || err != nil {
				t.Errorf("engine %v: %d runs, %v", c.engine, n, err)
			}
		}
	})
}
