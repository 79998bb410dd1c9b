package runs

import (
	"context"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
)

// Erase deletes the records of runs by their owner and stored session, and returns their ids.
// A run that another process continues is deleted too: it ends with an error.
func Erase(ctx context.Context, state store.Application, match func(owner, session string) bool) (deleted []string, err error) {
	for h, err := range state.Records(appstate.Runs).List(ctx, store.RecordQuery{}) {
		if err != nil {
			return deleted, err
		}
		rec, err := openRecord(ctx, state, h.ID)
		if err != nil {
			return deleted, err
		}
		var req storedRequest
		if !rec.get(requestValue, &req) || !match(req.Owner, req.Session) {
			continue
		}
		for _, kind := range []string{appstate.Unfinished, appstate.Runs} {
			if err := state.Records(kind).Delete(ctx, h.ID); err != nil {
				return deleted, err
			}
		}
		deleted = append(deleted, h.ID)
	}
	return deleted, nil
}
