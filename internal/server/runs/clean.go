package runs

import (
	"context"
	"errors"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
)

// cleanPeriod is the time between two searches for stored runs that have expired.
const cleanPeriod = time.Hour

// cleanPage is how many runs are listed at once.
const cleanPage = 256

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
	if m.opts.Store == nil {
		return nil
	}
	for after := ""; ; {
		page, err := store.ListSessions(ctx, m.opts.Store, runsMemory, store.SessionQuery{After: after, Limit: cleanPage})
		if err != nil {
			return err
		}
		for _, s := range page {
			if time.Since(s.Head.State.LastSaid) <= m.opts.Expire {
				continue
			}
			if err := m.removeExpired(ctx, s.Session); err != nil {
				return err
			}
		}
		if len(page) < cleanPage {
			return nil
		}
		after = page[len(page)-1].Session
	}
}

// removeExpired deletes a run that has ended and expired.
func (m *Manager) removeExpired(ctx context.Context, id string) error {
	rec, err := openRecord(ctx, m.opts.Store, id)
	if err != nil || rec.head.Version == 0 {
		return err
	}
	var req storedRequest
	if rec.get(requestValue, &req) && (m.isUnfinished(rec) || time.Since(req.Created) <= m.opts.Expire) {
		return nil
	}
	err = store.Remove(ctx, m.opts.Store, rec.key, rec.head.Version)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process uses or deletes it
	}
	return err
}
