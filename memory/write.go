package memory

import (
	"context"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Append adds messages, each of them as an append in itself: the window is
// fitted to the policy after every one. All are stored, or none. It waits while
// a turn of the session is active. The error is a *BalanceError unless the results of
// tool calls directly follow their call; the calls of the newest message may wait for
// results of a later Append.
func (m *Memory) Append(ctx context.Context, session string, msgs ...chat.Message) error {
	return m.AppendOnce(ctx, session, "", msgs...)
}

// AppendOnce is Append for callers that may have to try again: messages that
// were added under an idempotency key are added once.
func (m *Memory) AppendOnce(ctx context.Context, session, key string, msgs ...chat.Message) error {
	t, err := m.open(ctx, session, false)
	if err != nil {
		return err
	}
	defer t.close()
	t.strict = true // no other goroutine knows the turn
	if t.setIdempotencyKey(key) {
		return nil
	}
	if err := t.add(msgs); err != nil {
		return err
	}
	return t.commit(ctx, true)
}

// Set replaces the whole window, system message included, by msgs and fits it once. The
// former messages stay in the history, to which msgs are added; an id that the session has
// already is replaced by a new one. Tool calls and results are checked as by Append.
func (m *Memory) Set(ctx context.Context, session string, msgs ...chat.Message) error {
	if err := window.CheckMessages(msgs); err != nil {
		return err
	}
	if err := window.CheckPairs(m.key(session), msgs); err != nil {
		return err
	}
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	var ids []string
	for i := range msgs {
		if msgs[i].ID != "" {
			ids = append(ids, msgs[i].ID)
		}
	}
	known, err := m.reader.KnownIDs(ctx, t.key, ids)
	if err != nil {
		return err
	}
	entries, added := make([]*store.Entry, len(msgs)), map[string]bool{}
	for i, msg := range msgs {
		if known[msg.ID] != 0 || added[msg.ID] {
			msg.ID = ""
		}
		entries[i] = window.NewEntry(m.reader.Counter, msg)
		added[entries[i].Message.ID] = true
	}
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		n.Replace(t.policy, m.kind.Name, base, entries, m.moment())
		return true, nil
	}, nil)
}

// Clear deletes everything that the session has: window, history, variables and
// context. It waits while a turn of the session is active.
func (m *Memory) Clear(ctx context.Context, session string) error {
	s, err := m.lock(ctx, session)
	if err != nil {
		return err
	}
	defer m.sessions.Unlock(s)
	if err := m.erase(ctx, m.key(session)); err != nil {
		return err
	}
	return m.deleted(ctx, m.key(session).Session)
}

// deleted deletes what was derived from sessions that were deleted.
func (m *Memory) deleted(ctx context.Context, sessions ...string) error {
	if m.onDelete == nil || len(sessions) == 0 {
		return nil
	}
	return m.onDelete(ctx, sessions)
}
