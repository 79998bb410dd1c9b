package runs

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
)

// cleanPeriod is the time between two searches for stored runs that have expired.
const cleanPeriod = time.Hour

// keepClean deletes expired runs, once at the start and then in periods, until ctx ends.
func (m *Manager) keepClean(ctx context.Context) {
	tick := time.NewTicker(cleanPeriod)
	defer tick.Stop()
	for {
		if err := m.Clean(ctx); err != nil && ctx.Err() == nil {
			m.opts.Log.Warn("expired runs could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Clean deletes the stored runs that have expired; a Manager with a store calls it every
// hour. It reads only runs older than Options.Expire, and keeps runs that have not ended.
func (m *Manager) Clean(ctx context.Context) error {
	if m.opts.State == nil {
		return nil
	}
	state := m.opts.State()
	for h, err := range state.Records(appstate.Runs).List(ctx, store.RecordQuery{}) {
		if err == nil && time.Since(h.Stored) > m.opts.Expire {
			err = m.removeExpired(ctx, state, h.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeExpired deletes a run that has ended and expired.
func (m *Manager) removeExpired(ctx context.Context, state store.Application, id string) error {
	rec, err := openRecord(ctx, state, id)
	if err != nil || rec.head.Version == 0 {
		return err
	}
	var req storedRequest
	if rec.get(requestValue, &req) && (m.isUnfinished(rec) || time.Since(req.Created) <= m.opts.Expire) {
		return nil
	}
	_, err = state.Records(appstate.Runs).Remove(ctx, rec.head) // unless another process uses or deletes it
	return err
}
