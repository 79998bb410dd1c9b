package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/chat"
)

// Append says messages, each an append of its own: the window is fitted after
// every one. All are kept, or none. It waits for the session's turn.
func (m *Memory) Append(ctx context.Context, session string, msgs ...chat.Message) error {
	t, err := m.open(ctx, session, m.cached)
	if err != nil {
		return err
	}
	defer t.drop()
	if err := t.Add(msgs...); err != nil {
		return err
	}
	return t.commit(ctx, true)
}

// cached is the session as this process knows it. Where another process wrote
// since, the store answers with a conflict, and only then is anything read.
func (m *Memory) cached(ctx context.Context, key Key) (*view, error) {
	if v := m.live.get(key); v != nil {
		return v, nil
	}
	return m.load(ctx, key)
}

// drop ends a turn of which nothing is to be kept.
func (t *Turn) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.end()
	}
}

// Set replaces the whole window, system message included, by msgs and fits it
// once. What the window held stays in the history, to which msgs are added;
// those that the session holds already get ids of their own.
func (m *Memory) Set(ctx context.Context, session string, msgs ...chat.Message) error {
	if err := check(msgs); err != nil {
		return err
	}
	t, err := m.open(ctx, session, m.fresh)
	if err != nil {
		return err
	}
	defer t.drop()
	held, err := m.held(ctx, t.key, ids(msgs))
	if err != nil {
		return err
	}
	entries := make([]*Entry, len(msgs))
	for i, msg := range msgs {
		if held[msg.ID] {
			msg.ID = ""
		}
		entries[i] = m.entry(msg)
		held[entries[i].Message.ID] = true
	}
	return m.change(ctx, t.key, t.base, func(base *view) (*step, error) {
		return m.replaced(base, entries), nil
	})
}

// Clear removes everything that the session has: window and history. It waits
// for the session's turn.
func (m *Memory) Clear(ctx context.Context, session string) error {
	if err := m.lanes.enter(ctx, session); err != nil {
		return fmt.Errorf("memory %s: waiting for the turn of session %q: %w", m.id, session, err)
	}
	defer m.lanes.leave(session)
	m.live.drop(m.key(session))
	return m.store.Delete(ctx, m.key(session))
}

// Window is what the next call is sent, as committed by now. It reads nothing
// of the history beyond the window.
func (m *Memory) Window(ctx context.Context, session string) (Window, error) {
	v, err := m.fresh(ctx, m.key(session))
	if err != nil {
		return Window{}, err
	}
	w := Window{Tokens: v.state.Tokens, Limit: m.policy.Load().cap, Entries: make([]Entry, len(v.entries))}
	for i, e := range v.entries {
		w.Entries[i] = *e
	}
	if v.system != nil {
		system := *v.system
		w.System = &system
	} else if text := string(v.values[stepSystem]); text != "" {
		msg := chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: text}}}
		w.System = &Entry{Message: msg, Tokens: Tokens(m.counter, msg)}
	}
	return w, nil
}

// History yields everything that was said in the session, in order, reading as
// the range goes on. What is said after the range began is not part of it.
func (m *Memory) History(ctx context.Context, session string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		key := m.key(session)
		head, err := m.store.Head(ctx, key)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if head.State.Last == 0 {
			return
		}
		for e, err := range m.store.Entries(ctx, key, Query{To: head.State.Last}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			out := *e
			out.Status = head.State.status(e)
			if !yield(out, nil) {
				return
			}
		}
	}
}

// status tells where an entry stands.
func (s State) status(e *Entry) Status {
	switch {
	case e.Status == Failed:
		return Failed
	case e.Message.Role == chat.System && e.Seq != s.System:
		return Replaced
	case e.Message.Role != chat.System && e.Seq < s.First:
		return Flushed
	}
	return InWindow
}

// Events yields what happened to the session's window, in order.
func (m *Memory) Events(ctx context.Context, session string) iter.Seq2[Event, error] {
	return m.store.Events(ctx, m.key(session))
}

// Sessions lists the sessions of this memory, ordered by id.
func (m *Memory) Sessions(ctx context.Context) ([]SessionInfo, error) {
	limit := m.policy.Load().cap
	var out []SessionInfo
	for l, err := range m.store.Sessions(ctx, m.id) {
		if err != nil {
			return nil, err
		}
		s := l.Head.State
		out = append(out, SessionInfo{Session: l.Session, Messages: s.Last, InWindow: s.InWindow,
			Tokens: s.Tokens, Limit: limit, LastSaid: s.LastSaid, Flushes: s.Flushes})
	}
	return out, nil
}

// held tells which of the ids the session holds in turns that did not fail.
func (m *Memory) held(ctx context.Context, key Key, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return map[string]bool{}, nil
	}
	held := map[string]bool{}
	for e, err := range m.store.Entries(ctx, key, Query{Live: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		held[e.Message.ID] = true
	}
	return held, nil
}

func ids(msgs []chat.Message) []string {
	var out []string
	for _, m := range msgs {
		if m.ID != "" {
			out = append(out, m.ID)
		}
	}
	return out
}

func check(msgs []chat.Message) error {
	for _, m := range msgs {
		if err := m.Check(); err != nil {
			return fmt.Errorf("this message cannot be remembered: %w", err)
		}
	}
	return nil
}

// entry is a message with an id and its count, as every store can keep it.
func (m *Memory) entry(msg chat.Message) *Entry {
	if msg.ID == "" {
		msg.ID = chat.NewID()
	}
	msg = sound(msg)
	return &Entry{Message: msg, Tokens: Tokens(m.counter, msg)}
}

// sound is msg with valid UTF-8 in all texts: JSON can hold no other, and the
// window must be the same before and after a restart.
func sound(msg chat.Message) chat.Message {
	bad := func(b chat.Block) bool { return !utf8.ValidString(b.Text) || !utf8.ValidString(b.MimeType) }
	if slices.ContainsFunc(msg.Blocks, bad) {
		msg.Blocks = slices.Clone(msg.Blocks)
		for i, b := range msg.Blocks {
			msg.Blocks[i].Text, msg.Blocks[i].MimeType = valid(b.Text), valid(b.MimeType)
		}
	}
	if len(msg.ToolCalls) > 0 {
		msg.ToolCalls = slices.Clone(msg.ToolCalls)
		for i, c := range msg.ToolCalls {
			msg.ToolCalls[i] = chat.ToolCall{ID: valid(c.ID), Name: valid(c.Name), Arguments: valid(c.Arguments)}
		}
	}
	msg.ID, msg.Name, msg.ToolCallID = valid(msg.ID), valid(msg.Name), valid(msg.ToolCallID)
	return msg
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
