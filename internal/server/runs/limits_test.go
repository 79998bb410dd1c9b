package runs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// TestManager_WaitingRuns checks that runs which wait for answers do not prevent others,
// up to a separate limit.
func TestManager_WaitingRuns(t *testing.T) {
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{MaxActive: 1, MaxHeld: 3})
	defer func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = m.Shutdown(ctx)
	}()
	for i := range 4 {
		s := talk(t, app)
		s.ID, s.Session = "", fmt.Sprint("ada/", i)
		r, err := m.Begin(t.Context(), s)
		if i == 3 {
			if !errors.Is(err, runs.ErrBusy) {
				t.Errorf("run %d: %v", i, err)
			}
			break
		}
		testkit.Must(t, err)
		await(t, r, runs.RequestOpened)
	}
}

// TestManager_Clean checks that expired runs leave nothing in the store.
func TestManager_Clean(t *testing.T) {
	state := memory.NewInProcess()
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{State: in(state), Expire: 1})
	defer func() { _ = m.Shutdown(t.Context()) }()
	r, err := m.Begin(t.Context(), talk(t, app))
	testkit.Must(t, err)
	await(t, r, runs.RequestOpened)
	testkit.Must(t, m.Clean(t.Context()))
	if storedRuns(t, state) != 1 {
		t.Error("a run that waits was deleted")
	}
	testkit.Must(t, m.Cancel(t.Context(), r))
	await(t, r, runs.RunFinished)
	eventually(t, func() bool { // the end is stored after the last event
		testkit.Must(t, m.Clean(t.Context()))
		return storedRuns(t, state) == 0
	})
}

// eventually waits until a condition is true.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition has not become true")
		}
	}
}

// storedRuns returns the number of runs in a store.
func storedRuns(t *testing.T, state memory.Store) int {
	t.Helper()
	n := 0
	for _, err := range state.Sessions(t.Context(), storedRunsID) {
		testkit.Must(t, err)
		n++
	}
	return n
}

// TestManager_Forgets checks that ended runs are not kept without limit.
func TestManager_Forgets(t *testing.T) {
	app := open(t, memory.NewInProcess())
	m := runs.NewManager(runs.Options{MaxBytes: 20 << 10})
	defer func() { _ = m.Shutdown(t.Context()) }()
	for range 10 {
		s := talk(t, app)
		s.ID, s.Durable, s.Rows = "", false, []map[string]any{{"message": strings.Repeat("x", 1<<10)}}
		r, err := m.Begin(t.Context(), s)
		testkit.Must(t, err)
		await(t, r, runs.RunFinished)
		testkit.Must(t, r.Wait(t.Context()))
	}
	eventually(t, func() bool { return m.Active() == 0 })
	if n := len(m.List("ada", nil)); n == 0 || n > 8 {
		t.Errorf("%d runs are kept", n)
	}
}

// TestManager_AnswerNotStored checks that an answer which could not be stored, for which
// the client gets an error, has no effect.
func TestManager_AnswerNotStored(t *testing.T) {
	app := open(t, memory.NewInProcess())
	state := &failing{Store: memory.NewInProcess()}
	m := runs.NewManager(runs.Options{State: in(state)})
	defer func() { _ = m.Shutdown(t.Context()) }()
	r, err := m.Begin(t.Context(), talk(t, app))
	testkit.Must(t, err)
	await(t, r, runs.RequestOpened)
	a := &runs.Answer{ID: r.State().Pending[0].ID, Approved: yes()}
	state.down.Store(true)
	if err := m.Answer(asOwner(t, r), r, a); !errors.Is(err, errStoreDown) {
		t.Errorf("got %v", err)
	}
	if s := r.State(); s.Status != runs.Waiting {
		t.Errorf("the run is %s", s.Status)
	}
	state.down.Store(false)
	testkit.Must(t, m.Answer(asOwner(t, r), r, a))
	await(t, r, runs.RunFinished)
}

var errStoreDown = errors.New("the store is down")

// failing is a store that can be down.
type failing struct {
	memory.Store
	down atomic.Bool
}

func (f *failing) Apply(ctx context.Context, key memory.Key, c store.Change) error {
	if f.down.Load() {
		return errStoreDown
	}
	return f.Store.Apply(ctx, key, c)
}
