package runs

import (
	"context"
	"slices"
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
