package memory

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// UpdateValue changes a named value of a session outside of a turn; a nil value removes
// it. update is called again after a conflict, and returns false if there is nothing to
// do. It waits while a turn of the session is active.
func (m *Memory) UpdateValue(ctx context.Context, session, name string, update func(store.Head) (value []byte, ok bool)) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		value, ok := update(store.Head{Version: base.Version, State: base.State, Values: base.Values})
		if !ok {
			return false, nil
		}
		now := m.moment()
		n.Begin(base, now)
		n.Next.State.Extend(now)
		n.SetValue(name, value)
		return true, nil
	}, nil)
}

// SetIn is Set for a variable of a scope. Variables of a user or of the application are
// stored before the turn: a turn that is committed has set them.
func (t *Turn) SetIn(scope Scope, name string, value json.RawMessage) error {
	t.mu.Lock()
	shared := t.sharedSession(scope)
	t.mu.Unlock()
	if shared == "" {
		return t.Set(name, value)
	}
	v, err := change.NewVariable(t.memory.id, name, value)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	t.shared = append(t.shared, sharedVariable{shared, v})
	t.before = t.storeShared
	return nil
}

// sharedHead returns the head of a session that other sessions share. It lives as long as a
// session uses it: its ttl begins again when a part of it is over.
func (m *Memory) sharedHead(ctx context.Context, session string) (store.Head, error) {
	const renewedAfter = 4 // a fourth of the ttl: few turns write
	head, err := m.Head(ctx, session)
	if err != nil || m.ttl == 0 || head.Version == 0 || m.moment().Sub(head.State.LastSaid) < m.ttl/renewedAfter {
		return head, err
	}
	return head, m.renew(ctx, session)
}

// renew extends the ttl of a session.
func (m *Memory) renew(ctx context.Context, session string) error {
	t, err := m.open(ctx, session, true)
	if err != nil {
		return err
	}
	defer t.close()
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		if base.Version == 0 {
			return false, nil
		}
		now := m.moment()
		n.Begin(base, now)
		n.Next.State.Extend(now)
		return true, nil
	}, nil)
}

// sharedSession returns the session of a scope, "" if it is the session of the turn.
func (t *Turn) sharedSession(scope Scope) string {
	if s := t.memory.Conversation(scope.Session(t.key.Session)); s != t.key.Session {
		return s
	}
	return ""
}

// storeShared stores the variables of other scopes.
func (t *Turn) storeShared(ctx context.Context) error {
	bySession := map[string][]change.Variable{}
	for _, v := range t.shared {
		bySession[v.session] = append(bySession[v.session], v.Variable)
	}
	for session, set := range bySession {
		if err := t.memory.SetVariables(ctx, session, set...); err != nil {
			return err
		}
	}
	return nil
}

// VariablesIn returns the variables of a scope with those of this turn, by name.
func (t *Turn) VariablesIn(ctx context.Context, scope Scope) ([]change.Variable, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.variablesIn(ctx, scope)
	return change.SortedByName(all), err
}

// variablesIn returns them as Commit would store them, the one that was set last at the end.
func (t *Turn) variablesIn(ctx context.Context, scope Scope) ([]change.Variable, error) {
	shared := t.sharedSession(scope)
	if shared == "" {
		return t.variables(), nil
	}
	head, err := t.memory.sharedHead(ctx, shared)
	if err != nil {
		return nil, err
	}
	all := change.VariablesOf(head.Values)
	for _, v := range t.shared {
		if v.session == shared {
			all = change.MergeVariables(all, []change.Variable{v.Variable})
		}
	}
	return all, nil
}

// ListOf yields the other conversations of a scope, ordered by id and without expired
// ones: those of the same user, or all of the memory. A narrower scope has none.
func (m *Memory) ListOf(ctx context.Context, scope Scope, session string) iter.Seq2[store.SessionHead, error] {
	return func(yield func(store.SessionHead, error) bool) {
		user, _ := SplitSession(session)
		if scope.width() == 0 || scope == UserScope && user == "" {
			return
		}
		prefix := ""
		if scope == UserScope {
			prefix = UserPrefix(user)
		}
		for l, err := range m.Heads(ctx, prefix) {
			if err == nil && (l.Session == session || IsShared(l.Session)) {
				continue
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// Heads yields the sessions whose ids begin with a prefix with their heads, without
// expired ones and ordered by id.
func (m *Memory) Heads(ctx context.Context, prefix string) iter.Seq2[store.SessionHead, error] {
	const page = 500
	return func(yield func(store.SessionHead, error) bool) {
		q := store.SessionQuery{Prefix: prefix, Limit: page}
		for {
			heads, err := store.ListSessions(ctx, m.reader.Store, m.id, q)
			if err != nil {
				yield(store.SessionHead{}, err)
				return
			}
			for _, l := range heads {
				if q.After = l.Session; !m.expired(l.Head.State) && !yield(l, nil) {
					return
				}
			}
			if len(heads) < page {
				return
			}
		}
	}
}

// entriesOf yields the live entries of another session from a position on, in order.
func (m *Memory) entriesOf(ctx context.Context, l store.SessionHead, from int64) iter.Seq2[*store.Entry, error] {
	return m.reader.Current(ctx, store.Key{Memory: m.id, Session: l.Session}, l.Head.State, max(from, l.Head.State.FirstPosition()), l.Head.State.Last)
}
