package runs

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/runtime"
)

// remotePeriod is the time between two looks at a run of another process.
const remotePeriod = 250 * time.Millisecond

// Abandon cancels a run that waits for its client, and waits until it has ended: its client
// goes on without an answer.
func (m *Manager) Abandon(ctx context.Context, app *runtime.App, r *Run) error {
	if err := m.Cancel(ctx, r); err != nil {
		return err
	}
	for !m.IsLocal(r) && !r.State().Status.Ended() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(remotePeriod):
		}
		next, err := m.Find(ctx, app, r.Owner, r.ID)
		if err != nil || next == nil {
			return err
		}
		r = next
	}
	return r.Wait(ctx)
}

// Await waits until a run has ended, or waits for its client. A run of another process is
// read again until then; the returned run is the newest snapshot.
func (m *Manager) Await(ctx context.Context, app *runtime.App, r *Run) (run *Run, waiting bool, err error) {
	for !m.IsLocal(r) && r.State().Status == Running {
		select {
		case <-ctx.Done():
			return r, false, context.Cause(ctx)
		case <-time.After(remotePeriod):
		}
		next, err := m.Find(ctx, app, r.Owner, r.ID)
		if err != nil || next == nil {
			return r, false, err
		}
		r = next
	}
	if r.State().Status == Waiting {
		return r, true, nil
	}
	waiting, err = r.Settle(ctx)
	return r, waiting, err
}
