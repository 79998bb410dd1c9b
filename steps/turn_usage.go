package steps

import (
	"context"
	"fmt"
	"sync"
)

// turnUsage is what the calls of models in a turn have used. It is stored with the turn, so that a run that is repeated after
// the turn was committed has the same figures.
type turnUsage struct {
	mu    sync.Mutex
	calls int
	sum   Event
}

// withTurnUsage returns a context in which the usage of a turn is counted; nil in a run that cannot be repeated, and in one
// with batches, which counts the calls of all passes.
func withTurnUsage(ctx context.Context) (context.Context, *turnUsage) {
	if keys, _ := ctx.Value(idempotencyKeysKey{}).(*idempotencyKeys); keys == nil || originOf(ctx) != nil {
		return ctx, nil
	}
	u := &turnUsage{}
	return WithEvents(ctx, u.add, EventUsage), u
}

// add adds the usage of a call.
func (u *turnUsage) add(ev Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.sum.Input, u.sum.Output, u.sum.Cached = u.sum.Input+ev.Input, u.sum.Output+ev.Output, u.sum.Cached+ev.Cached
	u.sum.Cost, u.sum.Saved = u.sum.Cost+ev.Cost, u.sum.Saved+ev.Saved
	u.sum.Estimated = u.sum.Estimated || ev.Estimated
}

// noteFormat has the number of calls, their tokens read, written and cached, cost, saving, and whether tokens are estimates.
const noteFormat = "%d,%d,%d,%d,%g,%g,%t"

// note returns the usage as the note of a turn; empty for nil.
func (u *turnUsage) note() string {
	if u == nil {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprintf(noteFormat, u.calls, u.sum.Input, u.sum.Output, u.sum.Cached, u.sum.Cost, u.sum.Saved, u.sum.Estimated)
}

// reportNoted reports the usage in the note of a turn that an earlier run has committed: one event for each call, the first
// with the sums.
func (s *llmStep) reportNoted(ctx context.Context, row *Row, note string) {
	calls, ev := 0, Event{Kind: EventUsage}
	if _, err := fmt.Sscanf(note, noteFormat, &calls, &ev.Input, &ev.Output, &ev.Cached, &ev.Cost, &ev.Saved, &ev.Estimated); err != nil {
		return // it has none
	}
	for range calls {
		Report(ctx, s.event(row, ev))
		ev = Event{Kind: EventUsage}
	}
}
