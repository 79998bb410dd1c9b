package memory

import (
	"context"

	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// readTimeline reads the events of a session up to a turn.
func (m *Memory) readTimeline(ctx context.Context, key store.Key, turn int64) (*change.Timeline, error) {
	l := &change.Timeline{}
	for e, err := range m.store.Events(ctx, key) {
		if err != nil {
			return nil, err
		}
		l.Add(e, turn)
	}
	return l, nil
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
func (m *Memory) restore(ctx context.Context, p window.Policy, base *window.View, l *change.Timeline, key store.Key, last, kept int64) (*window.View, error) {
	v := m.newView()
	v.Version, v.State, v.Values, v.Step = base.Version, base.State, base.Values, base.Step
	st := &v.State
	st.Last, st.Floor = last, 0
	st.Rewound, st.Deleted, st.Edited = l.Hidden().String(), l.Removed().String(), l.Edits().String()
	if base.State.Floor <= kept {
		st.Floor = base.State.Floor
	}
	if n := len(l.Set); n > 0 {
		first, err := m.firstOf(ctx, key, last, l.Set[n-1].Turn)
		if err != nil {
			return nil, err
		}
		st.Floor = max(st.Floor, first)
	}
	st.Pinned = l.Pinned(max(st.Floor, 1)).String()
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
	v.Gaps, v.Begin = l.Gone(), base.State.First
	if l.Undone > 0 {
		v.Begin = min(v.Begin, l.Undone)
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
func (m *Memory) restoreSystem(ctx context.Context, key store.Key, base, v *window.View, l *change.Timeline) error {
	st, hidden := &v.State, l.Hidden()
	now := base.State.System
	switch {
	case !l.Returned && now >= v.MinSeq() && now <= st.Last && !hidden.Has(now):
		v.System = base.System
		return nil
	case now == 0 && st.Floor == base.State.Floor && !l.Returned:
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
func (m *Memory) hasOpenCallsBefore(ctx context.Context, key store.Key, v *window.View, l *change.Timeline) (bool, error) {
	oldest, hidden := v.MinSeq(), l.Hidden()
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
