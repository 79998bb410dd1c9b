// Package history reads stored sessions: the view of a session as it is now or was after an
// earlier turn, single messages, and which of some messages a session has. It writes nothing.
package history

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Reader reads the sessions of one memory from its store.
type Reader struct {
	Memory    string            // the memory's id
	Store     store.Store       // has the sessions
	Counter   window.Counter    // counts tokens
	Measured  bool              // views count characters
	Weighed   bool              // views count bytes
	Compactor *window.Compactor // makes short forms; nil for none
}

// NewView returns a session without messages.
func (r *Reader) NewView() *window.View { return window.NewView(r.Measured, r.Weighed, r.Compactor) }

// StepSystem returns a step's system message as an entry.
func (r *Reader) StepSystem(text string) *store.Entry {
	msg := chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: text}}}
	return &store.Entry{Message: msg, Tokens: window.TokensOf(r.Counter, &msg)}
}

// maxLoads bounds how often a window is read again because another process
// deleted the session in between.
const maxLoads = 10

// Load reads a session's window, and no more of its history, from the store.
func (r *Reader) Load(ctx context.Context, key store.Key) (*window.View, error) {
	for attempt := 0; ; attempt++ {
		head, err := r.Store.Head(ctx, key)
		if err != nil {
			return nil, err
		}
		v, err := r.loadHead(ctx, key, head)
		if err != nil {
			return nil, err
		}
		want := head.State.InWindow
		if head.State.Keep != 0 {
			want = head.State.Kept
		}
		if len(v.Entries) == want && (v.System != nil) == (head.State.System != 0) {
			return v, nil
		}
		if attempt == maxLoads {
			return nil, fmt.Errorf("memory %s, session %q: store is missing messages of the window (%d of %d found)",
				r.Memory, key.Session, len(v.Entries), want)
		}
	}
}

func (r *Reader) loadHead(ctx context.Context, key store.Key, head store.Head) (*window.View, error) {
	v := r.NewView()
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
		return nil, fmt.Errorf("memory %s, session %q: %w", r.Memory, key.Session, err)
	}
	if text := head.Values[change.StepSystemValue]; len(text) > 0 {
		v.Step = r.StepSystem(string(text))
	}
	if s := head.State.System; s != 0 {
		if v.System, err = r.Entry(ctx, key, v, s); err != nil {
			return nil, err
		}
	}
	return v, r.loadEntries(ctx, key, v)
}

// Entry returns the message at a position as it is now, nil for none.
func (r *Reader) Entry(ctx context.Context, key store.Key, v *window.View, seq int64) (*store.Entry, error) {
	if err := r.loadTexts(ctx, key, v, seq, seq); err != nil {
		return nil, err
	}
	for e, err := range r.Store.Entries(ctx, key, store.Query{From: seq, To: seq}) {
		if err != nil {
			return nil, err
		}
		return store.WithText(e, v.Texts[seq]), nil
	}
	return nil, nil
}

// loadTexts reads the newest texts of the edited messages between two positions that
// the view does not have yet.
func (r *Reader) loadTexts(ctx context.Context, key store.Key, v *window.View, from, to int64) error {
	if v.State.Edited == "" {
		return nil
	}
	edits, err := store.ParseEdits(v.State.Edited)
	if err != nil {
		return fmt.Errorf("memory %s, session %q: %w", r.Memory, key.Session, err)
	}
	edits = slices.DeleteFunc(edits, func(e store.Edit) bool { return v.Texts[e.Of] != nil })
	texts, err := r.EditedTexts(ctx, key, edits, from, to)
	if len(v.Texts) > 0 {
		maps.Copy(texts, v.Texts)
	}
	v.Texts = texts
	return err
}

// EditedTexts reads the newest texts of the messages between two positions, by the
// positions of the messages.
func (r *Reader) EditedTexts(ctx context.Context, key store.Key, edits store.Edits, from, to int64) (map[int64]*store.Entry, error) {
	texts := map[int64]*store.Entry{}
	for _, one := range edits {
		if one.Of < from || one.Of > to || edits.Current(one.Of) != one.By {
			continue
		}
		for e, err := range r.Store.Entries(ctx, key, store.Query{From: one.By, To: one.By}) {
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
func (r *Reader) loadEntries(ctx context.Context, key store.Key, v *window.View) (err error) {
	if err := r.loadTexts(ctx, key, v, v.Begin, v.State.Last); err != nil {
		return err
	}
	v.Gaps.Outside(v.Begin, v.State.Last, func(from, to int64) bool {
		for e, failed := range r.Store.Entries(ctx, key, store.Query{From: from, To: to, Live: true}) {
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

// Current yields the messages between two positions that did not fail and are part
// of the conversation, edited ones with their new texts.
func (r *Reader) Current(ctx context.Context, key store.Key, state store.State, from, to int64) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		_, hidden, err := state.Ranges()
		var texts map[int64]*store.Entry
		if err == nil {
			texts, err = r.EditedTexts(ctx, key, state.Edits(), from, to)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range r.Store.Entries(ctx, key, store.Query{From: from, To: to, Live: true}) {
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

// firstLookback is how many entries ExtendBack reads at first; each further read reads twice as many.
const firstLookback = 256

// ExtendBack returns v with as much more of the history as the policy needs
// under limits that were raised.
func (r *Reader) ExtendBack(ctx context.Context, key store.Key, v *window.View, p window.Policy) (*window.View, error) {
	rereader, ok := p.(window.Rereader)
	if !ok {
		return v, nil
	}
	back := int64(firstLookback)
	_, rewound, err := v.State.Ranges()
	if err != nil {
		return nil, err
	}
	for !rereader.Covers(v) {
		wide := r.NewView()
		wide.Version, wide.State, wide.Values, wide.System, wide.Step, wide.Texts = v.Version, v.State, v.Values, v.System, v.Step, v.Texts
		wide.Begin, wide.Gaps = max(v.Begin-back, v.MinSeq()), rewound
		back *= 2
		if err := r.loadEntries(ctx, key, wide); err != nil {
			return nil, err
		}
		v = wide
	}
	return v, nil
}
