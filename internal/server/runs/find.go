package runs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// Find returns the run with an id that belongs to an owner, nil if there is none. A
// run of another process is a snapshot of what is stored.
func (m *Manager) Find(ctx context.Context, app *runtime.App, owner, id string) (*Run, error) {
	r, err := m.find(ctx, app, id)
	if r == nil || r.Owner != owner {
		return nil, err
	}
	return r, err
}

// find is Find for a run of any owner.
func (m *Manager) find(ctx context.Context, app *runtime.App, id string) (*Run, error) {
	m.mu.Lock()
	r := m.runs[id]
	m.mu.Unlock()
	if r == nil && m.opts.State != nil {
		return m.load(ctx, app, id)
	}
	return r, nil
}

// List returns the runs of an owner in this process that keep selects, the newest first.
func (m *Manager) List(owner string, keep func(*Run) bool) []*Run {
	m.mu.Lock()
	var list []*Run
	for _, r := range m.runs {
		if r.Owner == owner {
			list = append(list, r)
		}
	}
	m.mu.Unlock()
	return newestFirst(list, keep)
}

// Active returns the number of runs that have not ended.
func (m *Manager) Active() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active
}

// Running returns the newest active run of a session of a flow, nil if there is none.
func (m *Manager) Running(flow, session string) *Run {
	return m.newest(flow, session, func(r *Run) bool { return !r.State().Status.Ended() })
}

// WaitingIn returns the newest run of a session of a flow that waits for its client, nil
// if there is none.
func (m *Manager) WaitingIn(flow, session string) *Run {
	return m.newest(flow, session, func(r *Run) bool { return r.State().Status == Waiting })
}

// FindWaiting is WaitingIn for runs on all servers: one that waits on another server is found
// by the lease of its turn.
func (m *Manager) FindWaiting(ctx context.Context, app *runtime.App, owner string, flow *spec.Flow, session string) (*Run, error) {
	if r := m.WaitingIn(flow.ID, session); r != nil {
		return r, nil
	}
	for _, id := range runtime.MemoryIDs(flow) {
		name, err := app.Memory(id).Work(ctx, session)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		r, err := m.Find(ctx, app, owner, name)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Flow.ID == flow.ID && r.Session == session && r.State().Status == Waiting {
			return r, nil
		}
	}
	return nil, nil
}

// ResumeWaiting is FindWaiting for an answer that does not name its run: if there is none, it continues the runs
// that no process has, as servers do every few seconds, and looks again.
func (m *Manager) ResumeWaiting(ctx context.Context, app *runtime.App, owner string, flow *spec.Flow, session string) (*Run, error) {
	if r, err := m.FindWaiting(ctx, app, owner, flow, session); r != nil || err != nil {
		return r, err
	}
	if err := m.resumeLately(ctx, app); err != nil {
		return nil, err
	}
	if r := m.Running(flow.ID, session); r != nil && r.Owner == owner { // it repeats what it has done before
		if waiting, err := r.Settle(ctx); waiting || err != nil {
			return r, err
		}
	}
	return m.FindWaiting(ctx, app, owner, flow, session)
}

// resumeLately is Resume, at most once a second: it reads all unfinished runs, and clients may send any number of
// answers.
func (m *Manager) resumeLately(ctx context.Context, app *runtime.App) error {
	m.resuming.Lock()
	defer m.resuming.Unlock()
	if time.Since(m.resumed) < pollPeriod {
		return nil
	}
	_, err := m.Resume(ctx, app)
	m.resumed = time.Now()
	return err
}

// InUse reports whether a session of a flow has an active run, on any server: one of another
// server is found by the lease of its turn.
func (m *Manager) InUse(ctx context.Context, app *runtime.App, flow *spec.Flow, session string) (bool, error) {
	if m.Running(flow.ID, session) != nil {
		return true, nil
	}
	for _, id := range runtime.MemoryIDs(flow) {
		if name, err := app.Memory(id).Work(ctx, session); name != "" || err != nil {
			return name != "", err
		}
	}
	return false, nil
}

func (m *Manager) newest(flow, session string, keep func(*Run) bool) *Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range slices.Backward(m.turns[conversation{flow, session}]) {
		if keep(r) {
			return r
		}
	}
	return nil
}

// Place returns the place of a run in List.
func (r *Run) Place() Place { return PlaceOf(r.Created, r.ID) }

// newestFirst sorts runs and returns those that keep selects.
func newestFirst(list []*Run, keep func(*Run) bool) []*Run {
	list = slices.DeleteFunc(list, func(r *Run) bool { return keep != nil && !keep(r) })
	slices.SortFunc(list, func(a, b *Run) int { return a.Place().Compare(b.Place()) })
	return list
}

// appTable counts the runs of each App, so that one that was replaced is closed when
// its last run has ended. The Manager's mutex guards it.
type appTable struct {
	users   map[*runtime.App]int
	retired []retiredApp
}

// retiredApp is an App that was replaced, and what else is closed with it.
type retiredApp struct {
	app  *runtime.App
	done func()
}

func (t *appTable) use(app *runtime.App) { t.users[app]++ }

func (t *appTable) release(app *runtime.App) {
	if t.users[app]--; t.users[app] == 0 {
		delete(t.users, app)
	}
	t.closeRetired()
}

// closeRetired closes the replaced applications without runs.
func (t *appTable) closeRetired() {
	t.retired = slices.DeleteFunc(t.retired, func(r retiredApp) bool {
		if t.users[r.app] > 0 {
			return false
		}
		go func() {
			r.done()
			_ = r.app.Close(context.Background()) // no caller is left for the error
		}()
		return true
	})
}

// Retire calls done and closes an App when its last run has ended.
func (m *Manager) Retire(app *runtime.App, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.retired = append(m.apps.retired, retiredApp{app, done})
	m.apps.closeRetired()
}

// Use keeps an App open, also if it is replaced, until Release is called.
func (m *Manager) Use(app *runtime.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.use(app)
}

// Release ends a Use.
func (m *Manager) Release(app *runtime.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.release(app)
}

// Place is the place of a run in a list, the newest first. A client that has read a part of the
// list continues after a place: runs that begin or are deleted meanwhile repeat or skip none.
type Place struct {
	nanos int64 // of the time by which the list is sorted
	id    string
}

// PlaceOf returns the place of a run in a list that is sorted by times.
func PlaceOf(at time.Time, id string) Place { return Place{at.UnixNano(), id} }

// Compare returns a negative number if p is before other in the list.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(other.nanos, p.nanos), strings.Compare(p.id, other.id))
}

// String returns the place as a text for clients.
func (p Place) String() string { return strconv.FormatInt(p.nanos, 36) + "." + p.id }

// ParsePlace parses what String returns.
func ParsePlace(text string) (p Place, ok bool) {
	number, id, found := strings.Cut(text, ".")
	nanos, err := strconv.ParseInt(number, 36, 64)
	return Place{nanos, id}, found && id != "" && err == nil
}
