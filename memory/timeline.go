package memory

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// timeline is what the events of a session record of its window. No store keeps
// the windows of earlier turns: they follow from the history and the timeline.
type timeline struct {
	evicted  []turnRange  // what left by the policy
	set      []turnRange  // what left because the window was replaced; from is 0 if it was empty
	rewound  store.Ranges // what left with its turns
	deleted  []turnRange  // what was deleted
	edited   []turnEdit   // what was edited
	pins     []turnPin    // what was pinned, and no longer
	flushes  int
	returned bool  // a rewind, deletion or edit was ignored or undone
	undone   int64 // the lowest position that an ignored or undone event concerns, 0 for none
}

// turnRange has the positions that left the window in a turn.
type turnRange struct {
	store.Range
	turn int64
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

// readTimeline reads the events of a session up to a turn.
func (m *Memory) readTimeline(ctx context.Context, key store.Key, turn int64) (*timeline, error) {
	l := &timeline{}
	for e, err := range m.store.Events(ctx, key) {
		if err != nil {
			return nil, err
		}
		l.add(e, turn)
	}
	return l, nil
}

func (l *timeline) add(e store.Event, through int64) {
	one := turnRange{store.Range{From: e.From, To: e.To}, e.Turn}
	switch {
	case e.Kind == store.EventPin || e.Kind == store.EventUnpin:
		if e.Turn <= through {
			l.pins = append(l.pins, turnPin{one, e.Kind == store.EventPin})
		}
	case !slices.Contains([]store.EventKind{store.EventFlush, store.EventSet, store.EventRewind, store.EventDelete, store.EventEdit}, e.Kind):
	case e.Turn > through:
		l.undo(one)
		l.returned = l.returned || e.Kind != store.EventFlush && e.Kind != store.EventSet
	case e.Kind == store.EventFlush:
		l.evicted = append(l.evicted, one)
		l.flushes++
	case e.Kind == store.EventSet:
		l.set = append(l.set, one)
	case e.Kind == store.EventRewind:
		l.rewind(e.Rewound, one.Range, e.Revised)
	case e.Kind == store.EventDelete:
		l.deleted = append(l.deleted, one)
	case e.Kind == store.EventEdit:
		l.edited = append(l.edited, turnEdit{store.Edit{Of: e.From, By: e.By}, e.Turn})
	}
}

func (l *timeline) undo(r turnRange) {
	if r.From > 0 && (l.undone == 0 || r.From < l.undone) {
		l.undone = r.From
	}
}

// rewind undoes what a turn and those after it did to the window, and reports
// whether they did anything but add messages; positions are those of the messages. With
// keep set, edits and deletions of earlier messages stay.
func (l *timeline) rewind(turn int64, positions store.Range, keep bool) bool {
	before := len(l.evicted) + len(l.set)
	undo := func(r turnRange) bool {
		if r.turn >= turn {
			l.undo(r)
		}
		return r.turn >= turn
	}
	l.evicted, l.set = slices.DeleteFunc(l.evicted, undo), slices.DeleteFunc(l.set, undo)
	revisions := len(l.deleted) + len(l.edited)
	revise := func(r turnRange) bool {
		return (!keep || positions.From > 0 && r.From >= positions.From) && undo(r)
	}
	l.deleted = slices.DeleteFunc(l.deleted, revise)
	l.edited = slices.DeleteFunc(l.edited, func(e turnEdit) bool { return revise(turnRange{store.Range{From: e.Of, To: e.Of}, e.turn}) })
	pins := len(l.pins)
	l.pins = slices.DeleteFunc(l.pins, func(p turnPin) bool {
		return p.turn >= turn && (!keep || positions.From > 0 && p.From >= positions.From)
	})
	if len(l.deleted)+len(l.edited) < revisions {
		l.returned = true
	}
	if positions.From > 0 {
		l.rewound = l.rewound.Union(positions)
	}
	return len(l.evicted)+len(l.set) < before || len(l.pins) < pins || len(l.deleted)+len(l.edited) < revisions
}

// edits returns the edits.
func (l *timeline) edits() store.Edits {
	var all store.Edits
	for _, e := range l.edited {
		all = append(all, e.Edit)
	}
	return all
}

// pinned returns the positions that are pinned, from a position on.
func (l *timeline) pinned(from int64) store.Ranges {
	var all store.Ranges
	for _, p := range l.pins {
		if p.set {
			all = all.Union(p.Range)
		} else {
			all = all.Except(store.Ranges{p.Range})
		}
	}
	return all.Except(l.hidden()).Since(from)
}

// removed returns the positions that were deleted.
func (l *timeline) removed() store.Ranges {
	all := make([]store.Range, len(l.deleted))
	for i, r := range l.deleted {
		all[i] = r.Range
	}
	return store.Ranges(nil).Union(all...)
}

// hidden returns the positions that have no place in the conversation.
func (l *timeline) hidden() store.Ranges {
	return l.rewound.Union(slices.Concat(l.removed(), l.edits().Texts())...)
}

// gone returns the positions that are not in the window.
func (l *timeline) gone() store.Ranges {
	all := make([]store.Range, len(l.evicted))
	for i, r := range l.evicted {
		all[i] = r.Range
	}
	return l.hidden().Union(all...)
}

// firstOf returns the position of the first message of a turn or of one after it,
// the position after last if there is none.
func (m *Memory) firstOf(ctx context.Context, key store.Key, last, turn int64) (int64, error) {
	low, high := int64(1), last+1
	for low < high {
		middle := low + (high-low)/2
		found := int64(-1)
		for e, err := range m.store.Entries(ctx, key, store.Query{From: middle, To: middle}) {
			if err != nil {
				return 0, err
			}
			found = e.Turn
		}
		switch {
		case found < 0:
			return 0, store.ErrConflict // another process deleted the session
		case found >= turn:
			high = middle
		default:
			low = middle + 1
		}
	}
	return low, nil
}

// restore returns the window that follows from a timeline, for a history up to
// last. base is the session as it is now; no message after kept remains.
func (m *Memory) restore(ctx context.Context, p window.Policy, base *window.View, l *timeline, key store.Key, last, kept int64) (*window.View, error) {
	v := m.newView()
	v.Version, v.State, v.Values, v.Step = base.Version, base.State, base.Values, base.Step
	st := &v.State
	st.Last, st.Floor = last, 0
	st.Rewound, st.Deleted, st.Edited = l.hidden().String(), l.removed().String(), l.edits().String()
	if base.State.Floor <= kept {
		st.Floor = base.State.Floor
	}
	if n := len(l.set); n > 0 {
		first, err := m.firstOf(ctx, key, last, l.set[n-1].turn)
		if err != nil {
			return nil, err
		}
		st.Floor = max(st.Floor, first)
	}
	st.Pinned = l.pinned(max(st.Floor, 1)).String()
	if err := m.restoreSystem(ctx, key, base, v, l); err != nil {
		return nil, err
	}
	if _, ok := p.(window.Rereader); ok {
		v.Begin = last + 1
		v, err := m.extendBack(ctx, key, v, p)
		if err == nil {
			front := 0
			for front < len(v.Entries) && window.IsResult(v.Entries[front]) {
				front++ // their call may precede the view
			}
			v.RemoveOrphans(front)
		}
		return v, err
	}
	v.Gaps, v.Begin = l.gone(), base.State.First
	if l.undone > 0 {
		v.Begin = min(v.Begin, l.undone)
	}
	v.Begin = max(v.Begin, v.MinSeq())
	if err := m.loadEntries(ctx, key, v); err != nil {
		return nil, err
	}
	v.Begin = last + 1
	if len(v.Entries) > 0 {
		v.Begin = v.Entries[0].Seq
	}
	v.Gaps = v.Gaps.Since(v.Begin)
	v.RemoveOrphans(0)
	var err error
	st.Open, err = m.hasOpenCallsBefore(ctx, key, v, l)
	return v, err
}

// restoreSystem finds the system message: the newest one that did not leave.
func (m *Memory) restoreSystem(ctx context.Context, key store.Key, base, v *window.View, l *timeline) error {
	st, hidden := &v.State, l.hidden()
	now := base.State.System
	switch {
	case !l.returned && now >= v.MinSeq() && now <= st.Last && !hidden.Has(now):
		v.System = base.System
		return nil
	case now == 0 && st.Floor == base.State.Floor && !l.returned:
		return nil // there is none, and no message returns
	}
	st.System = 0
	if st.Last == 0 { // a query to 0 has no end
		return nil
	}
	for e, err := range m.store.Entries(ctx, key, store.Query{From: v.MinSeq(), To: st.Last, Live: true}) {
		if err != nil {
			return err
		}
		if window.IsSystem(e) && !hidden.Has(e.Seq) {
			v.System, st.System = e, e.Seq
		}
	}
	if st.System == 0 {
		return nil
	}
	if err := m.loadTexts(ctx, key, v, st.System, st.System); err != nil {
		return err
	}
	v.System = store.WithText(v.System, v.Texts[st.System])
	return nil
}

// hasOpenCallsBefore reports whether the newest messages left the window, and are
// a tool call whose results may be yet to come.
func (m *Memory) hasOpenCallsBefore(ctx context.Context, key store.Key, v *window.View, l *timeline) (bool, error) {
	oldest, hidden := v.MinSeq(), l.hidden()
	if n := len(v.Entries); n > 0 {
		oldest = v.Entries[n-1].Seq + 1
	}
	for seq := v.State.Last; seq >= oldest; seq-- {
		if hidden.Has(seq) {
			continue
		}
		for e, err := range m.store.Entries(ctx, key, store.Query{From: seq, To: seq, Live: true}) {
			switch {
			case err != nil:
				return false, err
			case window.IsSystem(e) || window.IsResult(e):
			default:
				return len(e.Message.ToolCalls) > 0, nil
			}
		}
	}
	return false, nil
}
