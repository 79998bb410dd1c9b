package memory

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/qtype-dev/qtype/spec/chat"
)

// maxLoads bounds how often a window is read again because another process
// deleted the session in between.
const maxLoads = 10

// load reads a session's window, and no more of its history, from the store.
func (m *Memory) load(ctx context.Context, key Key) (*view, error) {
	for attempt := 0; ; attempt++ {
		head, err := m.store.Head(ctx, key)
		if err != nil {
			return nil, err
		}
		v, err := m.loadHead(ctx, key, head)
		if err != nil {
			return nil, err
		}
		want := head.State.InWindow
		if head.State.Keep != 0 {
			want = head.State.Kept
		}
		if len(v.entries) == want && (v.system != nil) == (head.State.System != 0) {
			m.sessions.setView(key.Session, v)
			return v, nil
		}
		if attempt == maxLoads {
			return nil, fmt.Errorf("memory %s, session %q: store is missing messages of the window (%d of %d found)",
				m.id, key.Session, len(v.entries), want)
		}
	}
}

func (m *Memory) loadHead(ctx context.Context, key Key, head Head) (*view, error) {
	v := m.newView()
	if head.Version == 0 {
		return v, nil
	}
	v.version, v.state, v.values = head.Version, head.State, head.Values
	v.begin = head.State.First
	if head.State.Keep != 0 {
		v.begin = head.State.Keep
	}
	var err error
	if v.gaps, _, err = head.State.ranges(); err != nil {
		return nil, fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
	}
	if text := head.Values[stepSystemValue]; len(text) > 0 {
		v.step = m.stepSystem(string(text))
	}
	if s := head.State.System; s != 0 {
		if v.system, err = m.loadEntry(ctx, key, v, s); err != nil {
			return nil, err
		}
	}
	return v, m.loadEntries(ctx, key, v)
}

// loadEntry returns the message at a position as it is now, nil for none.
func (m *Memory) loadEntry(ctx context.Context, key Key, v *view, seq int64) (*Entry, error) {
	if err := m.loadTexts(ctx, key, v, seq, seq); err != nil {
		return nil, err
	}
	for e, err := range m.store.Entries(ctx, key, Query{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		return withText(e, v.texts[seq]), nil
	}
	return nil, nil
}

// loadTexts reads the newest texts of the edited messages between two positions that
// the view does not have yet.
func (m *Memory) loadTexts(ctx context.Context, key Key, v *view, from, to int64) error {
	if v.state.Edited == "" {
		return nil
	}
	edits, err := parseEdits(v.state.Edited)
	if err != nil {
		return fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
	}
	edits = slices.DeleteFunc(edits, func(e edit) bool { return v.texts[e.of] != nil })
	texts, err := m.editedTexts(ctx, key, edits, from, to)
	if len(v.texts) > 0 {
		maps.Copy(texts, v.texts)
	}
	v.texts = texts
	return err
}

// editedTexts reads the newest texts of the messages between two positions, by the
// positions of the messages.
func (m *Memory) editedTexts(ctx context.Context, key Key, edits Edits, from, to int64) (map[int64]*Entry, error) {
	texts := map[int64]*Entry{}
	for _, one := range edits {
		if one.of < from || one.of > to || edits.Current(one.of) != one.by {
			continue
		}
		for e, err := range m.store.Entries(ctx, key, Query{From: one.by, To: one.by}) {
			if err == nil {
				err = checkDecrypted(key, e)
			}
			if err != nil {
				return texts, err
			}
			texts[one.of] = e
		}
	}
	return texts, nil
}

// loadEntries reads the entries from v.begin on that are in the window.
func (m *Memory) loadEntries(ctx context.Context, key Key, v *view) (err error) {
	if err := m.loadTexts(ctx, key, v, v.begin, v.state.Last); err != nil {
		return err
	}
	v.gaps.outside(v.begin, v.state.Last, func(from, to int64) bool {
		for e, failed := range m.store.Entries(ctx, key, Query{From: from, To: to, Live: true}) {
			if err = failed; err == nil {
				err = checkDecrypted(key, e)
			}
			if err != nil {
				return false
			}
			if e.Message.Role != chat.System && !v.gaps.has(e.Seq) {
				v.append(withText(e, v.texts[e.Seq]))
			}
		}
		return true
	})
	return err
}

// currentEntries yields the messages between two positions that did not fail and are part
// of the conversation, edited ones with their new texts.
func (m *Memory) currentEntries(ctx context.Context, key Key, state State, from, to int64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		_, hidden, err := state.ranges()
		var texts map[int64]*Entry
		if err == nil {
			texts, err = m.editedTexts(ctx, key, state.Edits(), from, to)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range m.store.Entries(ctx, key, Query{From: from, To: to, Live: true}) {
			if err == nil && hidden.has(e.Seq) {
				continue
			}
			if err == nil {
				e = withText(e, texts[e.Seq])
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// reload returns the session as the store has it now, from the cache if nothing
// changed since: then it is a copy in v.
func (m *Memory) reload(ctx context.Context, key Key, v *view) (*view, error) {
	if !m.sessions.view(key.Session, v) {
		return m.load(ctx, key)
	}
	version, err := m.storedVersion(ctx, key, v.stored)
	if err != nil {
		return nil, err
	}
	if version != v.version {
		return m.load(ctx, key)
	}
	return v, nil
}

// storedVersion returns the version of a session in the store; s is nil if it is not known.
func (m *Memory) storedVersion(ctx context.Context, key Key, s *storedSession) (int64, error) {
	if s != nil {
		if end := m.observe(ctx, "head"); end != nil {
			end(ctx.Err())
		}
		return s.version(), ctx.Err()
	}
	head, err := m.store.Head(ctx, key)
	return head.Version, err
}

// applyChange makes a change of a session and returns it, nil for a store outside of
// this process; s is nil if it is not known.
func (m *Memory) applyChange(ctx context.Context, key Key, s *storedSession, c *Change) (*storedSession, error) {
	if m.inProcess == nil {
		return nil, m.store.Apply(ctx, key, *c)
	}
	end := m.observe(ctx, "apply")
	s, err := m.inProcess.apply(ctx, key, s, c)
	if end != nil {
		end(err)
	}
	return s, err
}

// observe reports an operation of the store in this process that m does directly; it returns nil
// if nothing is reported.
func (m *Memory) observe(ctx context.Context, operation string) func(error) {
	if m.observer == nil {
		return nil
	}
	return m.observer(ctx, operation)
}

// firstLookback is how many entries extendBack reads at first; each further read reads twice as many.
const firstLookback = 256

// extendBack returns v with as much more of the history as the policy needs
// under limits that were raised.
func (m *Memory) extendBack(ctx context.Context, key Key, v *view, p evictionPolicy) (*view, error) {
	r, ok := p.(rereader)
	if !ok {
		return v, nil
	}
	back := int64(firstLookback)
	_, rewound, err := v.state.ranges()
	if err != nil {
		return nil, err
	}
	for !r.covers(v) {
		wide := m.newView()
		wide.version, wide.state, wide.values, wide.system, wide.step, wide.texts = v.version, v.state, v.values, v.system, v.step, v.texts
		wide.begin, wide.gaps = max(v.begin-back, v.minSeq()), rewound
		back *= 2
		if err := m.loadEntries(ctx, key, wide); err != nil {
			return nil, err
		}
		v = wide
	}
	return v, nil
}

// arrange returns a window of entries with the view's system message in its place.
func (m *Memory) arrange(v *view, entries []*Entry) Window {
	if len(entries) == 0 {
		entries = nil // an empty window is the same however it became empty
	}
	w := Window{Entries: entries, System: v.systemEntry()}
	switch {
	case v.system == nil || m.systemFirst || !m.kind.Supports("keep_system_first"):
	case v.pending:
		w.SystemAt = max(len(entries)-v.tail, 0)
	default:
		w.SystemAt = sort.Search(len(entries), func(i int) bool { return entries[i].Seq == 0 || entries[i].Seq > v.system.Seq })
	}
	return w
}
