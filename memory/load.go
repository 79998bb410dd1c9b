package memory

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxLoads bounds how often a window is read again because another process
// deleted the session in between.
const maxLoads = 10

// load reads a session's window, and no more of its history, from the store.
func (m *Memory) load(ctx context.Context, key store.Key) (*window.View, error) {
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
		if len(v.Entries) == want && (v.System != nil) == (head.State.System != 0) {
			m.sessions.SetView(key.Session, v)
			return v, nil
		}
		if attempt == maxLoads {
			return nil, fmt.Errorf("memory %s, session %q: store is missing messages of the window (%d of %d found)",
				m.id, key.Session, len(v.Entries), want)
		}
	}
}

func (m *Memory) loadHead(ctx context.Context, key store.Key, head store.Head) (*window.View, error) {
	v := m.newView()
	if head.Version == 0 {
		return v, nil
	}
	v.Version, v.State, v.Values = head.Version, head.State, head.Values
	v.Begin = head.State.First
	if head.State.Keep != 0 {
		v.Begin = head.State.Keep
	}
	var err error
	if v.Gaps, _, err = head.State.Ranges(); err != nil {
		return nil, fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
	}
	if text := head.Values[change.StepSystemValue]; len(text) > 0 {
		v.Step = m.stepSystem(string(text))
	}
	if s := head.State.System; s != 0 {
		if v.System, err = m.loadEntry(ctx, key, v, s); err != nil {
			return nil, err
		}
	}
	return v, m.loadEntries(ctx, key, v)
}

// loadEntry returns the message at a position as it is now, nil for none.
func (m *Memory) loadEntry(ctx context.Context, key store.Key, v *window.View, seq int64) (*store.Entry, error) {
	if err := m.loadTexts(ctx, key, v, seq, seq); err != nil {
		return nil, err
	}
	for e, err := range m.store.Entries(ctx, key, store.Query{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		return store.WithText(e, v.Texts[seq]), nil
	}
	return nil, nil
}

// loadTexts reads the newest texts of the edited messages between two positions that
// the view does not have yet.
func (m *Memory) loadTexts(ctx context.Context, key store.Key, v *window.View, from, to int64) error {
	if v.State.Edited == "" {
		return nil
	}
	edits, err := store.ParseEdits(v.State.Edited)
	if err != nil {
		return fmt.Errorf("memory %s, session %q: %w", m.id, key.Session, err)
	}
	edits = slices.DeleteFunc(edits, func(e store.Edit) bool { return v.Texts[e.Of] != nil })
	texts, err := m.editedTexts(ctx, key, edits, from, to)
	if len(v.Texts) > 0 {
		maps.Copy(texts, v.Texts)
	}
	v.Texts = texts
	return err
}

// editedTexts reads the newest texts of the messages between two positions, by the
// positions of the messages.
func (m *Memory) editedTexts(ctx context.Context, key store.Key, edits store.Edits, from, to int64) (map[int64]*store.Entry, error) {
	texts := map[int64]*store.Entry{}
	for _, one := range edits {
		if one.Of < from || one.Of > to || edits.Current(one.Of) != one.By {
			continue
		}
		for e, err := range m.store.Entries(ctx, key, store.Query{From: one.By, To: one.By}) {
			if err == nil {
				err = store.CheckDecrypted(key, e)
			}
			if err != nil {
				return texts, err
			}
			texts[one.Of] = e
		}
	}
	return texts, nil
}

// loadEntries reads the entries from v.begin on that are in the window.
func (m *Memory) loadEntries(ctx context.Context, key store.Key, v *window.View) (err error) {
	if err := m.loadTexts(ctx, key, v, v.Begin, v.State.Last); err != nil {
		return err
	}
	v.Gaps.Outside(v.Begin, v.State.Last, func(from, to int64) bool {
		for e, failed := range m.store.Entries(ctx, key, store.Query{From: from, To: to, Live: true}) {
			if err = failed; err == nil {
				err = store.CheckDecrypted(key, e)
			}
			if err != nil {
				return false
			}
			if e.Message.Role != chat.System && !v.Gaps.Has(e.Seq) {
				v.Append(store.WithText(e, v.Texts[e.Seq]))
			}
		}
		return true
	})
	return err
}

// currentEntries yields the messages between two positions that did not fail and are part
// of the conversation, edited ones with their new texts.
func (m *Memory) currentEntries(ctx context.Context, key store.Key, state store.State, from, to int64) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		_, hidden, err := state.Ranges()
		var texts map[int64]*store.Entry
		if err == nil {
			texts, err = m.editedTexts(ctx, key, state.Edits(), from, to)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range m.store.Entries(ctx, key, store.Query{From: from, To: to, Live: true}) {
			if err == nil && hidden.Has(e.Seq) {
				continue
			}
			if err == nil {
				e = store.WithText(e, texts[e.Seq])
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// reload returns the session as the store has it now, from the cache if nothing
// changed since: then it is a copy in v.
func (m *Memory) reload(ctx context.Context, key store.Key, v *window.View) (*window.View, error) {
	if !m.sessions.View(key.Session, v) {
		return m.load(ctx, key)
	}
	version, err := m.storedVersion(ctx, key, v.Stored)
	if err != nil {
		return nil, err
	}
	if version != v.Version {
		return m.load(ctx, key)
	}
	return v, nil
}

// storedVersion returns the version of a session in the store; s is nil if it is not known.
func (m *Memory) storedVersion(ctx context.Context, key store.Key, s store.LocalSession) (int64, error) {
	if s != nil {
		return s.Version(), ctx.Err()
	}
	head, err := m.store.Head(ctx, key)
	return head.Version, err
}

// applyChange makes a change of a session and returns it, nil for a store outside of
// this process; s is nil if it is not known.
func (m *Memory) applyChange(ctx context.Context, key store.Key, s store.LocalSession, c *store.Change) (store.LocalSession, error) {
	if m.local == nil {
		return nil, m.store.Apply(ctx, key, *c)
	}
	return m.local.ApplyLocal(ctx, key, s, c)
}

// firstLookback is how many entries extendBack reads at first; each further read reads twice as many.
const firstLookback = 256

// extendBack returns v with as much more of the history as the policy needs
// under limits that were raised.
func (m *Memory) extendBack(ctx context.Context, key store.Key, v *window.View, p window.Policy) (*window.View, error) {
	r, ok := p.(window.Rereader)
	if !ok {
		return v, nil
	}
	back := int64(firstLookback)
	_, rewound, err := v.State.Ranges()
	if err != nil {
		return nil, err
	}
	for !r.Covers(v) {
		wide := m.newView()
		wide.Version, wide.State, wide.Values, wide.System, wide.Step, wide.Texts = v.Version, v.State, v.Values, v.System, v.Step, v.Texts
		wide.Begin, wide.Gaps = max(v.Begin-back, v.MinSeq()), rewound
		back *= 2
		if err := m.loadEntries(ctx, key, wide); err != nil {
			return nil, err
		}
		v = wide
	}
	return v, nil
}

// arrange returns a window of entries with the view's system message in its place.
func (m *Memory) arrange(v *window.View, entries []*store.Entry) window.Window {
	if len(entries) == 0 {
		entries = nil // an empty window is the same however it became empty
	}
	w := window.Window{Entries: entries, System: v.SystemEntry()}
	switch {
	case v.System == nil || m.systemFirst || !m.kind.Supports("keep_system_first"):
	case v.Pending:
		w.SystemAt = max(len(entries)-v.Tail, 0)
	default:
		w.SystemAt = sort.Search(len(entries), func(i int) bool { return entries[i].Seq == 0 || entries[i].Seq > v.System.Seq })
	}
	return w
}
