package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// maxAttempts bounds how often a change is tried again because other processes
// were faster; each failed attempt means that one of theirs succeeded.
const maxAttempts = 1000

// pause waits after a conflict, longer after several ones, so that writers of
// different processes do not collide again.
func pause(ctx context.Context, attempt int) error {
	if attempt < 2 {
		return ctx.Err()
	}
	wait := time.Duration(rand.IntN(min(attempt, 20))+1) * time.Millisecond
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// answerRetryTime is how long a turn with an answer tries to store it, in addition to the
// time limit of the store.
const answerRetryTime = time.Minute

// commitRetry decides whether a change is tried again while its store has short trouble.
type commitRetry struct {
	until    time.Time // zero: it is not
	attempts int
}

// again reports whether to try again after err. It waits before.
func (p *commitRetry) again(ctx context.Context, err error) bool {
	var e *StoreError
	if p.until.IsZero() || !errors.As(err, &e) || !e.Temporary || time.Now().After(p.until) {
		return false
	}
	p.attempts++
	return pause(ctx, p.attempts+1) == nil
}

// expired reports whether the session's ttl is over. Reading does not extend it.
func (m *Memory) expired(s State) bool {
	return m.ttl > 0 && !s.LastSaid.IsZero() && m.now().Sub(s.LastSaid) > m.ttl
}

// expireIfDue returns v, or an empty view after it deleted a session whose ttl
// is over. The caller has locked the session.
func (m *Memory) expireIfDue(ctx context.Context, key Key, v *view) (*view, error) {
	for range maxAttempts {
		if !m.expired(v.state) {
			return v, nil
		}
		err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: key.Session, Reason: auditExpired, Messages: v.state.Last})
		if err != nil {
			return nil, err
		}
		err = m.remove(ctx, key, v.version)
		if err == nil {
			return m.newView(), nil
		}
		if !errors.Is(err, ErrConflict) {
			return nil, err
		}
		if v, err = m.load(ctx, key); err != nil {
			return nil, err
		}
	}
	return nil, ErrConflict
}

// Head returns version, state and values of a session as committed; the zero
// Head for an unknown or expired one. The values must not be modified.
func (m *Memory) Head(ctx context.Context, session string) (Head, error) {
	head, err := m.store.Head(ctx, m.key(session))
	if err != nil || m.expired(head.State) {
		return Head{}, err
	}
	return head, nil
}

// auditExpired is the reason why a session is deleted whose ttl is over.
const auditExpired = "expired"

// auditUnused is the reason why PruneUnused deletes a session before its ttl is over.
const auditUnused = "unused"

// erase deletes a session that the caller has locked.
func (m *Memory) erase(ctx context.Context, key Key) error {
	if err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: key.Session}); err != nil {
		return err
	}
	if err := m.forget(ctx, key); err != nil {
		return err
	}
	return m.store.Delete(ctx, key)
}

// remove deletes a session that has the given version.
func (m *Memory) remove(ctx context.Context, key Key, version int64) error {
	if err := m.forget(ctx, key); err != nil {
		return err
	}
	return Remove(ctx, m.store, key, version)
}

// forget removes the cached view of a session and what its context stored apart from it.
func (m *Memory) forget(ctx context.Context, key Key) error {
	m.sessions.setView(key.Session, nil)
	if m.context == nil {
		return nil
	}
	return m.context.Delete(ctx, m.store, key)
}

// knownIDs returns which of the ids belong to messages of the session that did
// not fail, with their positions.
func (m *Memory) knownIDs(ctx context.Context, key Key, ids []string) (map[string]int64, error) {
	known := map[string]int64{}
	if len(ids) == 0 {
		return known, nil
	}
	for e, err := range m.store.Entries(ctx, key, Query{Live: true, IDs: ids}) {
		if err != nil {
			return nil, err
		}
		known[e.Message.ID] = e.Seq
	}
	return known, nil
}

// withoutKnown returns the entries that the session does not have yet. A message
// that was rewound gets another id, always the same one, so that it can be added
// once more; ids has the new ids by the old ones.
func (m *Memory) withoutKnown(ctx context.Context, key Key, s State, entries []*Entry) (rest []*Entry, ids map[string]string, err error) {
	_, hidden, err := s.ranges()
	if err != nil {
		return nil, nil, err
	}
	ids = map[string]string{}
	for renamed := true; renamed; entries = rest {
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Message.ID
		}
		known, err := m.knownIDs(ctx, key, names)
		if err != nil {
			return nil, nil, err
		}
		if len(known) == 0 {
			return entries, ids, nil
		}
		renamed, rest = false, nil // a store may have the slice of an earlier attempt
		for _, e := range entries {
			seq := known[e.Message.ID]
			switch {
			case seq == 0:
			case hidden.has(seq):
				c := *e
				c.Message.ID = fmt.Sprintf("%s~%d", e.Message.ID, seq)
				ids[e.Message.ID] = c.Message.ID
				e, renamed = &c, true
			default:
				continue
			}
			rest = append(rest, e)
		}
	}
	return rest, ids, nil
}
