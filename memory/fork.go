package memory

import (
	"context"
	"fmt"
	"maps"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// SessionExistsError reports that a session cannot be created because there is one.
type SessionExistsError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names both.
func (e *SessionExistsError) Error() string {
	return fmt.Sprintf("memory %s: session %q exists already", e.Memory, e.Session)
}

// Fork creates the session to with the history of another one up to and including a turn,
// 0 for all. Messages keep their ids, times, turns and statuses. The window and, as far
// as they are known, the variables are as they were after that turn; a summary of later
// messages is left out. Turns that were rewound later are part of the fork. The other
// session is not changed and may be in use. Fork returns a *SessionExistsError if the
// target exists, and a *TurnError for an unknown session or turn.
func (m *Memory) Fork(ctx context.Context, from, to string, turn int64) error {
	if err := m.record(ctx, AuditRecord{Operation: AuditCopy, Session: m.Conversation(from), ToSession: m.Conversation(to)}); err != nil {
		return err
	}
	return m.create(ctx, to, func(p window.Policy, n *change.Transition) error { return m.copyTo(ctx, p, n, from, turn) })
}

// create makes a session by one change, which plan prepares.
func (m *Memory) create(ctx context.Context, session string, plan func(window.Policy, *change.Transition) error) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		if base.Version != 0 {
			return false, &SessionExistsError{Memory: m.id, Session: session}
		}
		return true, plan(t.policy, n)
	}, nil)
}

// copyTo makes t the transition that creates a session with the history of one of m.
func (m *Memory) copyTo(ctx context.Context, p window.Policy, t *change.Transition, session string, turn int64) error {
	for attempt := range maxAttempts {
		version, err := m.copyOnce(ctx, p, t, session, turn)
		if err != nil && !store.IsConflict(err) {
			return err
		}
		if err == nil {
			head, err := m.reader.Store.Head(ctx, m.key(session))
			if err != nil || head.Version == version {
				return err
			}
		}
		if err := pause(ctx, attempt); err != nil { // another turn has ended meanwhile
			return err
		}
	}
	return fmt.Errorf("memory %s, session %q: %w, %d times in a row", m.id, session, store.ErrConflict, maxAttempts)
}

// copyOnce is copyTo for a session that does not change meanwhile. It returns the
// version of which it read the head.
func (m *Memory) copyOnce(ctx context.Context, p window.Policy, t *change.Transition, session string, turn int64) (int64, error) {
	key := m.key(session)
	base, err := m.load(ctx, key)
	if err != nil {
		return 0, err
	}
	if base.Version == 0 || m.expired(base.State) || turn < 0 || turn > base.State.Turns {
		return 0, &TurnError{Memory: m.id, Session: session, Turn: turn, Last: base.State.Turns}
	}
	past := base
	if turn != 0 && turn < base.State.Turns {
		if past, err = m.reader.After(ctx, p, base, key, turn); err != nil {
			return 0, err
		}
	}
	t.Begin(past, m.moment())
	t.Next.State.LastSaid = t.Now // the copy is new
	if len(past.Values) > 0 {
		t.Change.Values, t.Next.Values = maps.Clone(past.Values), maps.Clone(past.Values)
		t.SetValue(change.IdempotencyValue, nil)
		t.SetValue(change.LeaseValue, nil)
	}
	if past != base {
		t.SetVariablesOf(turn)
		from := past.State.Last + 1
		if revised := change.FirstRevised(base.State, past.State); revised > 0 {
			from = min(from, revised)
		}
		t.DropContext(m.context, from)
	}
	t.Settle(p)
	for e, err := range m.reader.Store.Entries(ctx, key, store.Query{To: max(past.State.Last, 1)}) {
		if err != nil {
			return 0, err
		}
		if e.Seq <= past.State.Last {
			t.Change.Entries = append(t.Change.Entries, e)
		}
	}
	for e, err := range m.reader.Store.Events(ctx, key) {
		if err != nil {
			return 0, err
		}
		if e.Turn <= past.State.Turns {
			t.Change.Events = append(t.Change.Events, e)
		}
	}
	return base.Version, nil
}
