package change

import (
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
)

// Timeline is what the events of a session record of its window. No store keeps
// the windows of earlier turns: they follow from the history and the timeline.
type Timeline struct {
	evicted  []turnRange  // what left by the policy
	Set      []turnRange  // what left because the window was replaced; from is 0 if it was empty
	rewound  store.Ranges // what left with its turns
	deleted  []turnRange  // what was deleted
	edited   []turnEdit   // what was edited
	pins     []turnPin    // what was pinned, and no longer
	Flushes  int
	Returned bool  // a rewind, deletion or edit was ignored or undone
	Undone   int64 // the lowest position that an ignored or undone event concerns, 0 for none
}

// turnRange has the positions that left the window in a turn.
type turnRange struct {
	store.Range
	Turn int64
}

// turnEdit is an edit that was made in a turn.
type turnEdit struct {
	store.Edit
	turn int64
}

// turnPin is a pin that was set or removed in a turn.
type turnPin struct {
	turnRange
	set bool
}

// Add adds an event. One of a turn after through is noted as undone.
func (l *Timeline) Add(e store.Event, through int64) {
	one := turnRange{store.Range{From: e.From, To: e.To}, e.Turn}
	switch {
	case e.Kind == store.EventPin || e.Kind == store.EventUnpin:
		if e.Turn <= through {
			l.pins = append(l.pins, turnPin{one, e.Kind == store.EventPin})
		}
	case !slices.Contains([]store.EventKind{store.EventFlush, store.EventSet, store.EventRewind, store.EventDelete, store.EventEdit}, e.Kind):
	case e.Turn > through:
		l.undo(one)
		l.Returned = l.Returned || e.Kind != store.EventFlush && e.Kind != store.EventSet
	case e.Kind == store.EventFlush:
		l.evicted = append(l.evicted, one)
		l.Flushes++
	case e.Kind == store.EventSet:
		l.Set = append(l.Set, one)
	case e.Kind == store.EventRewind:
		l.Rewind(e.Rewound, one.Range, e.Revised)
	case e.Kind == store.EventDelete:
		l.deleted = append(l.deleted, one)
	case e.Kind == store.EventEdit:
		l.edited = append(l.edited, turnEdit{store.Edit{Of: e.From, By: e.By}, e.Turn})
	}
}

func (l *Timeline) undo(r turnRange) {
	if r.From > 0 && (l.Undone == 0 || r.From < l.Undone) {
		l.Undone = r.From
	}
}

// Rewind undoes what a turn and those after it did to the window, and reports
// whether they did anything but add messages; positions are those of the messages. With
// keep set, edits and deletions of earlier messages stay.
func (l *Timeline) Rewind(turn int64, positions store.Range, keep bool) bool {
	before := len(l.evicted) + len(l.Set)
	undo := func(r turnRange) bool {
		if r.Turn >= turn {
			l.undo(r)
		}
		return r.Turn >= turn
	}
	l.evicted, l.Set = slices.DeleteFunc(l.evicted, undo), slices.DeleteFunc(l.Set, undo)
	revisions := len(l.deleted) + len(l.edited)
	revise := func(r turnRange) bool {
		return (!keep || positions.From > 0 && r.From >= positions.From) && undo(r)
	}
	l.deleted = slices.DeleteFunc(l.deleted, revise)
	l.edited = slices.DeleteFunc(l.edited, func(e turnEdit) bool { return revise(turnRange{store.Range{From: e.Of, To: e.Of}, e.turn}) })
	pins := len(l.pins)
	l.pins = slices.DeleteFunc(l.pins, func(p turnPin) bool {
		return p.Turn >= turn && (!keep || positions.From > 0 && p.From >= positions.From)
	})
	if len(l.deleted)+len(l.edited) < revisions {
		l.Returned = true
	}
	if positions.From > 0 {
		l.rewound = l.rewound.Union(positions)
	}
	return len(l.evicted)+len(l.Set) < before || len(l.pins) < pins || len(l.deleted)+len(l.edited) < revisions
}

// Edits returns the edits.
func (l *Timeline) Edits() store.Edits {
	var all store.Edits
	for _, e := range l.edited {
		all = append(all, e.Edit)
	}
	return all
}

// Pinned returns the positions that are pinned, from a position on.
func (l *Timeline) Pinned(from int64) store.Ranges {
	var all store.Ranges
	for _, p := range l.pins {
		if p.set {
			all = all.Union(p.Range)
		} else {
			all = all.Except(store.Ranges{p.Range})
		}
	}
	return all.Except(l.Hidden()).Since(from)
}

// Removed returns the positions that were deleted.
func (l *Timeline) Removed() store.Ranges {
	all := make([]store.Range, len(l.deleted))
	for i, r := range l.deleted {
		all[i] = r.Range
	}
	return store.Ranges(nil).Union(all...)
}

// Hidden returns the positions that have no place in the conversation.
func (l *Timeline) Hidden() store.Ranges {
	return l.rewound.Union(slices.Concat(l.Removed(), l.Edits().Texts())...)
}

// Gone returns the positions that are not in the window.
func (l *Timeline) Gone() store.Ranges {
	all := make([]store.Range, len(l.evicted))
	for i, r := range l.evicted {
		all[i] = r.Range
	}
	return l.Hidden().Union(all...)
}
