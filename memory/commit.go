package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory/store"
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
	return timer.Sleep(ctx, time.Duration(rand.IntN(min(attempt, 20))+1)*time.Millisecond)
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
	var e *store.Error
	if p.until.IsZero() || !errors.As(err, &e) || !e.Temporary || time.Now().After(p.until) {
		return false
	}
	p.attempts++
	return pause(ctx, p.attempts+1) == nil
}

// expired reports whether the session's ttl is over. Reading does not extend it.
func (m *Memory) expired(s store.State) bool {
	return m.ttl > 0 && !s.LastSaid.IsZero() && m.now().Sub(s.LastSaid) > m.ttl
}

// expireIfDue returns v, or an empty view after it deleted a session whose ttl
// is over. The caller has locked the session.
func (m *Memory) expireIfDue(ctx context.Context, key store.Key, v *window.View) (*window.View, error) {
	for range maxAttempts {
		if !m.expired(v.State) {
			return v, nil
		}
		err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: key.Session, Reason: auditExpired, Messages: v.State.Last})
		if err != nil {
			return nil, err
		}
		err = m.remove(ctx, key, v.Version, v.State.Last)
		if err == nil {
			return m.reader.NewView(), nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
		if v, err = m.load(ctx, key); err != nil {
			return nil, err
		}
	}
	return nil, store.ErrConflict
}

// Head returns version, state and values of a session as committed; the zero
// Head for an unknown or expired one. The values must not be modified.
func (m *Memory) Head(ctx context.Context, session string) (store.Head, error) {
	head, err := m.reader.Store.Head(ctx, m.key(session))
	if err != nil || m.expired(head.State) {
		return store.Head{}, err
	}
	return head, nil
}

// auditExpired is the reason why a session is deleted whose ttl is over.
const auditExpired = "expired"

// auditUnused is the reason why PruneUnused deletes a session before its ttl is over.
const auditUnused = "unused"

// erase deletes a session that the caller has locked.
func (m *Memory) erase(ctx context.Context, key store.Key) error {
	if err := m.record(ctx, AuditRecord{Operation: AuditDelete, Session: key.Session}); err != nil {
		return err
	}
	head, err := m.reader.Store.Head(ctx, key)
	if err != nil {
		return err
	}
	if err := m.forget(ctx, key, head.State.Last); err != nil {
		return err
	}
	if err := m.reader.Store.Delete(ctx, key); err != nil {
		return err
	}
	return m.forgetWords(ctx, key, head.State.Last) // another process may have stored them meanwhile
}

// remove deletes a session that has the given version and messages up to last.
func (m *Memory) remove(ctx context.Context, key store.Key, version, last int64) error {
	if err := m.forget(ctx, key, last); err != nil {
		return err
	}
	if err := store.Remove(ctx, m.reader.Store, key, version); err != nil {
		return err
	}
	return m.forgetWords(ctx, key, last) // see erase
}

// forget removes the cached view of a session with messages up to last, and what is stored apart from it.
func (m *Memory) forget(ctx context.Context, key store.Key, last int64) error {
	m.sessions.SetView(key.Session, nil)
	if err := m.forgetWords(ctx, key, last); err != nil {
		return err
	}
	if m.context == nil {
		return nil
	}
	return m.context.Delete(ctx, m.reader.Store, key)
}
