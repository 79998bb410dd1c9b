package runs

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
)

// Watch counts a client that follows the run, until leave is called.
func (r *Run) Watch() (leave func()) {
	r.watchers.Add(1)
	return func() { r.watchers.Add(-1) }
}

// Disconnected is called when a client of a run has gone: the run ends, unless others
// follow it, it is detached, or waits for the client to come back with an answer.
func (r *Run) Disconnected() {
	if !r.detached && r.watchers.Load() == 0 && r.State().Status != Waiting {
		r.end(ErrCancelled)
	}
}

// Shutdown stops accepting runs and waits until the active ones have ended or ctx
// ends. Runs that wait for an answer or for batches are suspended if they survive a restart.
func (m *Manager) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	active := make([]*Run, 0, m.active)
	for _, r := range m.runs {
		active = append(active, r)
	}
	m.mu.Unlock()
	defer m.background.Wait()
	defer m.stop()
	for _, r := range active {
		if r.survives() && (r.batches != nil || r.State().Status == Waiting) {
			r.end(memory.ErrSuspended)
		}
	}
	for _, r := range active {
		if r.Wait(ctx) == nil {
			continue
		}
		if r.survives() {
			r.end(memory.ErrSuspended)
		} else {
			r.end(ErrClosed)
		}
		<-r.finished
	}
	return context.Cause(ctx)
}
