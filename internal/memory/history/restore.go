package history

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// Timeline reads the events of a session up to a turn.
func (r *Reader) Timeline(ctx context.Context, key store.Key, turn int64) (*change.Timeline, error) {
	l := &change.Timeline{}
	for e, err := range r.Store.Events(ctx, key) {
		if err != nil {
			return nil, err
		}
		l.Add(e, turn)
	}
	return l, nil
}

// FirstOf returns the position of the first message of a turn or of one after it,
// the position after last if there is none.
func (r *Reader) FirstOf(ctx context.Context, key store.Key, last, turn int64) (int64, error) {
	low, high := int64(1), last+1
	for low < high {
		middle := low + (high-low)/2
		found := int64(-1)
		for e, err := range r.Store.Entries(ctx, key, store.Query{From: middle, To: middle}) {
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

// Restore returns the window that follows from a timeline, for a history up to
// last. base is the session as it is now; no message after kept remains.
func (r *Reader) Restore(ctx context.Context, p window.Policy, base *window.View, l *change.Timeline, key store.Key, last, kept int64) (*window.View, error) {
	v := r.NewView()
	v.Version, v.State, v.Values, v.Step = base.Version, base.State, base.Values, base.Step
	st := &v.State
	st.Last, st.Floor = last, 0
	st.Rewound, st.Deleted, st.Edited = l.Hidden().String(), l.Removed().String(), l.Edits().String()
	if base.State.Floor <= kept {
		st.Floor = base.State.Floor
	}
	if n := len(l.Set); n > 0 {
		first, err := r.FirstOf(ctx, key, last, l.Set[n-1].Turn)
		if err != nil {
			return nil, err
		}
		st.Floor = max(st.Floor, first)
	}
	st.Pinned = l.Pinned(max(st.Floor, 1)).String()
	if err := r.RestoreSystem(ctx, key, base, v, l); err != nil {
		return nil, err
	}
	if _, ok := p.(window.Rereader); ok {
		v.Begin = last + 1
		v, err := r.ExtendBack(ctx, key, v, p)
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
	if err := r.loadEntries(ctx, key, v); err != nil {
		return nil, err
	}
	v.Begin = last + 1
	if len(v.Entries) > 0 {
		v.Begin = v.Entries[0].Seq
	}
	v.Gaps = v.Gaps.Since(v.Begin)
	v.RemoveOrphans(0)
	var err error
	st.Open, err = r.hasOpenCallsBefore(ctx, key, v, l)
	return v, err
}

// RestoreSystem finds the system message: the newest one that did not leave.
func (r *Reader) RestoreSystem(ctx context.Context, key store.Key, base, v *window.View, l *change.Timeline) error {
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
	for e, err := range r.Store.Entries(ctx, key, store.Query{From: v.MinSeq(), To: st.Last, Live: true}) {
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
	if err := r.loadTexts(ctx, key, v, st.System, st.System); err != nil {
		return err
	}
	v.System = store.WithText(v.System, v.Texts[st.System])
	return nil
}

// hasOpenCallsBefore reports whether the newest messages left the window, and are
// a tool call whose results may be yet to come.
func (r *Reader) hasOpenCallsBefore(ctx context.Context, key store.Key, v *window.View, l *change.Timeline) (bool, error) {
	oldest, hidden := v.MinSeq(), l.Hidden()
	if n := len(v.Entries); n > 0 {
		oldest = v.Entries[n-1].Seq + 1
	}
	for seq := v.State.Last; seq >= oldest; seq-- {
		if hidden.Has(seq) {
			continue
		}
		for e, err := range r.Store.Entries(ctx, key, store.Query{From: seq, To: seq, Live: true}) {
			switch {
			case err != nil:
				return false, err
			case window.IsSystem(e) || window.IsResult(e):
			default:
				return e.Message.HasCalls(), nil
			}
		}
	}
	return false, nil
}

// After returns a session as it was after a turn.
func (r *Reader) After(ctx context.Context, p window.Policy, base *window.View, key store.Key, turn int64) (*window.View, error) {
	next, err := r.FirstOf(ctx, key, base.State.Last, turn+1)
	if err != nil {
		return nil, err
	}
	l, err := r.Timeline(ctx, key, turn)
	if err != nil {
		return nil, err
	}
	past, err := r.Restore(ctx, p, base, l, key, next-1, next-1)
	if err == nil {
		past.State.Turns, past.State.Flushes = turn, l.Flushes
	}
	return past, err
}

// RewindEvent describes the messages that leave with a turn and those after it.
func (r *Reader) RewindEvent(ctx context.Context, key store.Key, base *window.View, turn int64) (store.Event, error) {
	last := base.State.Last
	e := store.Event{Kind: store.EventRewind, Rewound: turn, To: last, Reason: fmt.Sprintf("turn %d and later ones were rewound", turn)}
	_, rewound, err := base.State.Ranges()
	if err != nil {
		return e, err
	}
	if e.From, err = r.FirstOf(ctx, key, last, turn); err != nil {
		return e, err
	}
	if e.From > last { // these turns added no messages
		e.From, e.To = 0, 0
		return e, nil
	}
	for entry, err := range r.Store.Entries(ctx, key, store.Query{From: e.From, To: last, Live: true}) {
		if err != nil {
			return e, err
		}
		if !rewound.Has(entry.Seq) {
			e.Messages, e.Tokens = e.Messages+1, e.Tokens+entry.Tokens
		}
	}
	return e, nil
}
