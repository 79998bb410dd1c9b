package runs

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Parts returns the memories of a store that have the runs.
func Parts() []string { return []string{unfinishedMemory, runsMemory} }

// Erase deletes the records of runs by their owner and stored session, and returns their ids.
// A run that another process continues is deleted too: it ends with an error.
func Erase(ctx context.Context, backend memory.Store, match func(owner, session string) bool) (deleted []string, err error) {
	const page = 200
	q := store.SessionQuery{Limit: page}
	for {
		heads, err := store.ListSessions(ctx, backend, runsMemory, q)
		if err != nil {
			return deleted, err
		}
		for _, l := range heads {
			q.After = l.Session
			rec, err := openRecord(ctx, backend, l.Session)
			if err != nil {
				return deleted, err
			}
			var req storedRequest
			if !rec.get(requestValue, &req) || !match(req.Owner, req.Session) {
				continue
			}
			for _, part := range Parts() {
				if err := backend.Delete(ctx, memory.Key{Memory: part, Session: l.Session}); err != nil {
					return deleted, err
				}
			}
			deleted = append(deleted, l.Session)
		}
		if len(heads) < page {
			return deleted, nil
		}
	}
}
