package explain

import (
	"slices"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// Removals has the event by which each message of a session left the window.
type Removals struct {
	events []memory.Event
	kept   []int32 // of messages that did not fail: index of the event by position, plus 1; 0 for none
	failed []int32 // of failed messages
}

// NewRemovals reads the events of a session with last messages, up to a turn.
func NewRemovals(events []memory.Event, turn, last int64) *Removals {
	r := &Removals{events: events, kept: make([]int32, last+1), failed: make([]int32, last+1)}
	rewound := make([]bool, last+1) // for good: a later event may span them
	undone := undoneBy(events, turn)
	for i, e := range events {
		if e.Turn > turn || undone[i] || !isRemoval(e.Kind) {
			continue
		}
		of := r.kept
		if e.Kind == store.EventFailed {
			of = r.failed
		}
		for seq := max(e.From, 1); seq <= min(e.To, last); seq++ {
			if !rewound[seq] {
				of[seq] = int32(i + 1)
			}
			rewound[seq] = rewound[seq] || e.Kind == store.EventRewind
		}
	}
	return r
}

// undoneBy reports for each event whether a later rewind, up to a turn, undoes it. What was
// rewound does not return.
func undoneBy(events []memory.Event, turn int64) []bool {
	undone := make([]bool, len(events))
	for i, rewind := range events {
		if rewind.Kind != store.EventRewind || rewind.Turn > turn {
			continue
		}
		for j, e := range events[:i] {
			undone[j] = undone[j] || e.Kind != store.EventRewind && undoes(rewind, e)
		}
	}
	return undone
}

// Of returns the newest event by which a message left the window and did not return. found is false if there is none.
func (r *Removals) Of(e memory.Entry) (ev memory.Event, found bool) {
	return r.at(e.Seq, e.Status == store.Failed)
}

func (r *Removals) at(seq int64, failed bool) (ev memory.Event, found bool) {
	of := r.kept
	if failed {
		of = r.failed
	}
	if seq < 1 || seq >= int64(len(of)) || of[seq] == 0 {
		return memory.Event{}, false
	}
	return r.events[of[seq]-1], true
}

// evictedWhole returns the eviction that begins at a position if it removed all messages of
// its range, and none of them failed or left for another reason.
func (r *Removals) evictedWhole(seq, last int64) (ev memory.Event, found bool) {
	i := r.kept[seq]
	if i == 0 {
		return ev, false
	}
	ev = r.events[i-1]
	if ev.Kind != store.EventFlush || ev.From != seq || ev.To > last || int64(ev.Messages) != ev.To-ev.From+1 {
		return ev, false
	}
	other := func(one int32) bool { return one != i }
	return ev, !slices.ContainsFunc(r.kept[ev.From:ev.To+1], other)
}
