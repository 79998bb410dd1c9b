// Package memory remembers conversations. A Memory keeps, for each session, the
// whole history of what was said and a window: the newest part of it that is
// sent to the model. What leaves the window, and when, is the policy's matter;
// there are five (reference memory.md 6), flush is the default.
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
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/spec"
)

// Config declares a memory.
type Config struct {
	ID              string      // the memory's id in the document
	Policy          spec.Policy // what leaves the window when it is full; empty: flush
	TokenLimit      int         // as in Limits
	ChatShare       float64     // as in Limits
	FlushSize       int         // as in Limits
	MaxMessages     int         // as in Limits
	MaxTokens       int         // as in Limits
	NRounds         int         // as in Limits
	MaxContext      int         // as in Limits
	KeepSystemFirst bool        // message_window, token_window: a new system message goes to the front, not to the end

	LimitsOf func(session string) Limits // the limits of a session, asked at every read and write; nil: those above, or SetLimits'
	Turns    TurnPolicy                  // what Begin does while another turn of the session goes on; empty: it waits
	TTL      time.Duration               // a session that nobody touched for so long is deleted; 0: never
	Counter  Counter                     // counts tokens; required
	Context  []Block                     // flush: what is sent beside the messages
	Warn     func(string)                // is told, in one line each and once, why a summary or a retrieval is not what it should be; nil: nobody
	Live     int                         // sessions whose windows are kept in process beside the store; 0: 1,024
	Now      func() time.Time            // the clock; nil: time.Now
}

// Limits are the limits that cfg sets.
func (cfg *Config) Limits() Limits {
	return Limits{TokenLimit: cfg.TokenLimit, ChatShare: cfg.ChatShare, FlushSize: cfg.FlushSize,
		MaxMessages: cfg.MaxMessages, MaxTokens: cfg.MaxTokens, NRounds: cfg.NRounds, MaxContext: cfg.MaxContext}
}

// Memory is one declared memory with all its sessions. It is safe for
// concurrent use; every step that names it shares it.
type Memory struct {
	id          string
	kind        spec.Policy
	systemFirst bool // keep_system_first
	limitsOf    func(session string) Limits
	turns       TurnPolicy
	ttl         time.Duration
	counter     Counter
	now         func() time.Time
	store       Store
	policy      atomic.Pointer[evictionPolicy]
	live        *viewCache
	context     *contextBuilder // nil without context blocks
	lanes       sessionLocks
}

// New makes the memory that cfg declares, over store, which may serve several
// memories and stays the caller's to close.
func New(cfg Config, store Store) (*Memory, error) {
	m := &Memory{id: cfg.ID, kind: cfg.Policy, systemFirst: cfg.KeepSystemFirst, limitsOf: cfg.LimitsOf,
		turns: cfg.Turns, ttl: cfg.TTL, counter: cfg.Counter, now: cfg.Now, store: store}
	if m.kind == "" {
		m.kind = spec.PolicyFlush
	}
	if m.turns == "" {
		m.turns = Queue
	}
	if m.now == nil {
		m.now = time.Now
	}
	if err := m.check(&cfg); err != nil {
		return nil, err
	}
	var err error
	if m.context, err = newComposer(&cfg); err != nil {
		return nil, err
	}
	m.live = newViewCache(cfg.Live)
	if _, ok := store.(*inProcess); ok && cfg.Live == 0 {
		m.live = newViewCache(math.MaxInt) // views share their entries with the store
	}
	if cfg.LimitsOf != nil && cfg.Limits() == (Limits{}) {
		return m, nil // the function is asked for each session
	}
	return m, m.SetLimits(cfg.Limits())
}

// check refuses what cannot be.
func (m *Memory) check(cfg *Config) error {
	window := m.kind == spec.PolicyMessageWindow || m.kind == spec.PolicyTokenWindow
	switch {
	case cfg.Counter == nil:
		return fmt.Errorf("memory %s needs a token counter", cfg.ID)
	case m.store == nil:
		return fmt.Errorf("memory %s needs a store", cfg.ID)
	case cfg.Live < 0:
		return fmt.Errorf("memory %s: the number of live sessions must not be negative", cfg.ID)
	case cfg.TTL < 0:
		return fmt.Errorf("memory %s: ttl must be positive, not %s", cfg.ID, cfg.TTL)
	case cfg.KeepSystemFirst && !window:
		return fmt.Errorf("memory %s: keep_system_first is for the policies message_window and token_window, not %s", cfg.ID, m.kind)
	case !m.turns.valid():
		return fmt.Errorf("memory %s: turns must be queue, reject or interrupt, not %q", cfg.ID, m.turns)
	}
	return nil
}

// ID is the memory's id in the document.
func (m *Memory) ID() string { return m.id }

// SetLimits changes the limits of all sessions. With policy flush the new ones
// hold from the next message on, with the others for reads as well.
func (m *Memory) SetLimits(l Limits) error {
	p, err := newPolicy(m.kind, l)
	if err != nil {
		return fmt.Errorf("memory %s: %w", m.id, err)
	}
	m.policy.Store(&p)
	return nil
}

// policyOf is the policy with the limits that hold for a session now.
func (m *Memory) policyOf(session string) (evictionPolicy, error) {
	if m.limitsOf == nil {
		return *m.policy.Load(), nil
	}
	p, err := newPolicy(m.kind, m.limitsOf(session))
	if err != nil {
		return nil, fmt.Errorf("memory %s, session %q: %w", m.id, session, err)
	}
	return p, nil
}

func (m *Memory) key(session string) Key { return Key{Memory: m.id, Session: session} }

// maxAttempts bounds how often a change is tried again because other processes
// were faster; each attempt that fails means that one of theirs succeeded.
const maxAttempts = 1000

// applyWithRetry makes one change to a session: plan builds it from where the session
// stands, again whenever another writer was faster. A nil plan changes nothing.
// The caller holds the session's lane.
func (m *Memory) applyWithRetry(ctx context.Context, key Key, base *view, plan func(*view) (*transition, error)) error {
	for attempt := range maxAttempts {
		s, err := plan(base)
		if err != nil || s == nil {
			return err
		}
		s.change.Version, s.change.Next = base.version, nextVersion(base.version)
		err = m.store.Apply(ctx, key, s.change)
		if err == nil {
			m.commitView(key, s)
			return nil
		}
		m.live.drop(key) // what the store holds now is not known
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrDuplicateMessage) {
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

// transition is a change of a session and the view that results from it.
type transition struct {
	change Change
	next   *view
}

// commitView publishes the view of a change that the store has applied.
func (m *Memory) commitView(key Key, t *transition) {
	t.next.version = t.change.Next
	m.live.put(key, t.next)
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
