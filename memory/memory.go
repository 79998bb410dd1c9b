// Package memory remembers conversations. A Memory keeps, for each session, the
// whole history of what was said and a window: the newest part of it that is
// sent to the model. What leaves the window, and when, is the policy's matter;
// the policy here is QType's own, flush (reference memory.md 2).
//
// A step's call is a Turn: it commits whole or leaves the window as it was.
// Turns of one session run one after the other; a session written by several
// processes is guarded by a version in the store, so nothing is lost.
//
// Tokens are counted once, when a message is said. An append costs one count
// and an amortised constant of evictions, however long the conversation.
package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Config declares a memory.
type Config struct {
	ID         string           // the memory's id in the document
	TokenLimit int              // tokens that window and context together may hold; 0: 100,000
	ChatShare  float64          // the share of TokenLimit for chat messages, above 0 and at most 1; 0: 0.7
	FlushSize  int              // tokens that leave at a time at least; 0: 3,000
	Counter    Counter          // counts tokens; required
	Live       int              // sessions whose windows are kept in process beside the store; 0: 1,024
	Now        func() time.Time // the clock; nil: time.Now
}

// Limits are what may change while a memory is in use. The new ones hold from
// the next message on. Zero values mean the same as in Config.
type Limits struct {
	TokenLimit int     // as in Config
	ChatShare  float64 // as in Config
	FlushSize  int     // as in Config
}

// Memory is one declared memory with all its sessions. It is safe for
// concurrent use; every step that names it shares it.
type Memory struct {
	id      string
	counter Counter
	now     func() time.Time
	store   Store
	policy  atomic.Pointer[flush]
	live    *live
	lanes   lanes
}

// New makes the memory that cfg declares, over store, which may serve several
// memories and stays the caller's to close.
func New(cfg Config, store Store) (*Memory, error) {
	m := &Memory{id: cfg.ID, counter: cfg.Counter, now: cfg.Now, store: store}
	switch {
	case cfg.Counter == nil:
		return nil, fmt.Errorf("memory %s needs a token counter", cfg.ID)
	case store == nil:
		return nil, fmt.Errorf("memory %s needs a store", cfg.ID)
	case cfg.Live < 0:
		return nil, fmt.Errorf("memory %s: the number of live sessions must not be negative", cfg.ID)
	}
	if m.now == nil {
		m.now = time.Now
	}
	m.live = newLive(cfg.Live)
	return m, m.SetLimits(Limits{TokenLimit: cfg.TokenLimit, ChatShare: cfg.ChatShare, FlushSize: cfg.FlushSize})
}

// ID is the memory's id in the document.
func (m *Memory) ID() string { return m.id }

// SetLimits changes the limits of all sessions, from the next message on.
func (m *Memory) SetLimits(l Limits) error {
	p, err := newFlush(l)
	if err != nil {
		return fmt.Errorf("memory %s: %w", m.id, err)
	}
	m.policy.Store(p)
	return nil
}

func (m *Memory) key(session string) Key { return Key{Memory: m.id, Session: session} }

// maxAttempts bounds how often a change is tried again because other processes
// were faster; each attempt that fails means that one of theirs succeeded.
const maxAttempts = 1000

// change makes one change to a session: plan builds it from where the session
// stands, again whenever another writer was faster. A nil plan changes nothing.
// The caller holds the session's lane.
func (m *Memory) change(ctx context.Context, key Key, base *view, plan func(*view) (*step, error)) error {
	for attempt := range maxAttempts {
		s, err := plan(base)
		if err != nil || s == nil {
			return err
		}
		s.change.Version, s.change.Next = base.version, nextVersion(base.version)
		err = m.store.Apply(ctx, key, s.change)
		if err == nil {
			s.next.version = s.change.Next
			m.live.put(key, s.next)
			return nil
		}
		m.live.drop(key) // what the store holds now is not known
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		if base, err = m.load(ctx, key); err != nil {
			return err
		}
	}
	return fmt.Errorf("memory %s, session %q: %w, %d times over", m.id, key.Session, ErrConflict, maxAttempts)
}

// step is one change and the view that follows from it.
type step struct {
	change Change
	next   *view
}

// nextVersion never gives a version twice in one session's life, not even after
// the session was deleted and began anew: it begins at a random number.
func nextVersion(v int64) int64 {
	if v == 0 {
		return rand.Int64N(1<<62) + 1
	}
	return v + 1
}

// pause waits a moment after a conflict, longer the more there were, so that
// writers of several processes do not run in step.
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
