package memory

import (
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// TurnReport is what a turn has changed, for metrics and traces. It is filled when
// the turn changes the session: when it commits, or when it is recorded as failed.
type TurnReport struct {
	Version  int64      // the session's version; 0 if nothing was stored
	Added    int        // messages that were added to the history
	Evicted  int        // messages that left the window
	Flushes  int        // how often messages left it; see State
	Messages int        // messages in the window, without the system message
	Used     int        // how much of Limit is used
	Limit    int        // the most that Used may be, 0 for no limit
	Unit     store.Unit // unit of Used and Limit
}

// fill describes the session after a change that was stored. It does nothing if r is nil.
func (r *TurnReport) fill(p window.Policy, before *window.View, n *change.Transition) {
	if r == nil {
		return
	}
	flushes := n.Next.State.Flushes - before.State.Flushes
	*r = TurnReport{Version: n.Next.Version, Added: len(n.Change.Entries), Flushes: flushes, Messages: n.Next.State.InWindow}
	r.Used, r.Limit, r.Unit = p.Usage(window.SizeOf(p, window.Compacted(p, &n.Next)))
	if r.Unit == store.InCharacters {
		r.Used = n.Next.State.Used
	}
	for i := range n.Change.Events {
		if e := &n.Change.Events[i]; e.Kind == store.EventFlush {
			r.Evicted += e.Messages
		}
	}
}
