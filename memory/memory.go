// Package memory stores conversations. A Memory has, for each session, the
// whole history of messages and a window: the part of it that is sent to the
// model. A policy decides which messages leave the window.
//
//	err := m.Turn(ctx, session, func(t *memory.Turn) error { … })
//	err := m.Append(ctx, session, chat.Text(chat.User, "hello"))
//	window, err := m.Window(ctx, session)
//	for entry, err := range m.History(ctx, session) { … }
//
// A step of a flow is a Turn: it commits as a whole or leaves the window as it
// was. Turns of one session run one after the other; between processes a version
// in the store detects concurrent writes, and the later writer tries again.
//
// Tokens are counted once, when a message is added. An append costs one count
// and an amortized constant number of evictions, however long the history is.
//
// Its packages depend on each other in one direction:
//
//	store, inprocess         the contract of stores, and the one in RAM
//	internal/window          a session at one version; policies; what a call sends
//	internal/budget          the room of a call
//	internal/change          changes of a session: the one path of every write
//	internal/history         reading stored sessions
//	internal/locks           the order of turns, and cached views
//	memory                   turns and the operations on sessions
//
// So do its files:
//
//	aliases, owner                           names of other packages; users and their sessions
//	turn_policy, context, audit              concurrent turns; the context interface; audit logs
//	memory, load, commit, lease              reading and writing a session
//	turn_report, turn, question, turn_commit, turn_variables, shared, idempotency    turns
//	turn_context, call, calibration          calls of models in turns
//	write, read, snapshot, expiry, forget_user    the other methods of Memory
//	rewind, edit, pin, fork, ephemeral, import    those that change what is there, and those for whole sessions
//	similar                                  those for package search
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/history"
	"github.com/qtype-dev/qtype/internal/memory/locks"
	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Config declares a memory.
type Config struct {
	ID              string        // the memory's id in the document
	Policy          spec.Policy   // what leaves the window when it is full; empty: flush
	Limits          window.Limits // the limits of the policy; a limit that is not there has its default
	KeepSystemFirst bool          // message_window, token_window: a new system message goes to the front, not to the end

	LimitsOf    func(session string) window.Limits // the limits of a session, called at every read and write; nil: Limits, or those of SetLimits
	Turns       TurnPolicy                         // what Begin does while another turn of the session is active; empty: it waits
	Lease       time.Duration                      // with Turns other than Queue: how long a session stays busy after a process with a turn was killed; 0: 15 seconds
	TTL         time.Duration                      // a session is deleted when nothing was added to it for this long; 0: never
	Counter     window.Counter                     // counts tokens; required
	Scope       Scope                              // which sessions are one conversation: all of a user, or all; empty: each is one
	Context     ContextSource                      // flush: what is sent in addition to the messages; nil: nothing
	KeepContext bool                               // context that was sent with a question is stored and sent with it as long as it is in the window
	Live        int                                // sessions whose windows are cached in this process; 0: 4,096, or all with NewInProcess
	Now         func() time.Time                   // the clock; nil: time.Now
	Audit       Auditor                            // records reads and deletions; nil: nothing is recorded
	Compact     window.Compaction                  // what is shortened before messages leave; zero: nothing
	Observe     store.Observer                     // is notified of the operations of the store; nil: nothing is

	// Background runs work that a turn leaves to be done after it, such as embeddings of its messages, and
	// returns false if it does not; nil: the next turn does it. The context of the work ends when the store is about to be closed.
	Background func(work func(context.Context)) bool

	OnDelete func(ctx context.Context, sessions []string) error // deletes what was derived from sessions, by their stored ids, after Clear and Prune; nil: nothing was
}

// Memory is one declared memory with all its sessions. It is safe for
// concurrent use and shared by the steps that name it.
type Memory struct {
	id           string
	kind         window.Kind
	systemFirst  bool // keep_system_first
	limitsOf     func(session string) window.Limits
	turns        TurnPolicy
	lease        time.Duration // 0 for defaultLease
	clock        store.ServerClock
	ttl          time.Duration
	scope        Scope
	audit        Auditor
	onDelete     func(ctx context.Context, sessions []string) error // Config.OnDelete
	background   func(work func(context.Context)) bool              // Config.Background
	now          func() time.Time
	reader       history.Reader   // reads the store
	local        store.LocalStore // that of reader, if it is in this process
	observer     store.Observer   // of the operations of local; nil for none
	policy       atomic.Pointer[window.Policy]
	sessions     locks.Table
	turnsPool    sync.Pool     // of *Turn that ended and that no caller knows
	transitions  sync.Pool     // of *transition
	partsPool    sync.Pool     // of *prefix.Parts
	views        sync.Pool     // of *view
	context      ContextSource // nil for none
	compactAt    float64       // Compaction.At
	keepsContext bool          // Config.KeepContext
	accepted     budget.Sizes  // of the requests of this process
}

// defaultCachedSessions is the number of sessions whose windows are cached by default. Those of
// large windows are fewer: package locks bounds their size.
const defaultCachedSessions = 4096

// New returns the memory that cfg declares. Several memories may share a
// store, which the caller closes.
func New(cfg Config, store store.Store) (*Memory, error) {
	kind, err := window.FindPolicy(cfg.Policy)
	if err != nil {
		return nil, fmt.Errorf("memory %s: %w", cfg.ID, err)
	}
	return newMemory(cfg, kind, store)
}

func newMemory(cfg Config, kind window.Kind, backend store.Store) (*Memory, error) {
	m := &Memory{id: cfg.ID, kind: kind, systemFirst: cfg.KeepSystemFirst, limitsOf: cfg.LimitsOf, turns: cfg.Turns, lease: cfg.Lease, observer: cfg.Observe,
		ttl: cfg.TTL, scope: cfg.Scope, audit: cfg.Audit, onDelete: cfg.OnDelete, background: cfg.Background, now: cfg.Now, context: cfg.Context, compactAt: cfg.Compact.At, keepsContext: cfg.KeepContext}
	m.reader = history.Reader{Memory: cfg.ID, Store: store.Observe(backend, cfg.Observe), Counter: cfg.Counter, Measured: kind.Measured,
		Compactor: window.NewCompactor(cfg.Compact, cfg.Counter)}
	if m.turns == "" {
		m.turns = Queue
	}
	if m.now == nil {
		m.now = time.Now
	}
	if err := m.check(&cfg); err != nil {
		return nil, err
	}
	m.sessions.MaxViews = cfg.Live
	m.local, _ = backend.(store.LocalStore)
	if m.local == nil && cfg.Live == 0 { // views share the entries of a store in this process
		m.sessions.MaxViews = defaultCachedSessions
	}
	m.reader.Weighed = m.sessions.MaxViews != 0
	if cfg.LimitsOf != nil && len(cfg.Limits) == 0 {
		return m, nil // called for each session
	}
	return m, m.SetLimits(cfg.Limits)
}

// check returns an error for an invalid configuration.
func (m *Memory) check(cfg *Config) error {
	switch {
	case cfg.Counter == nil:
		return fmt.Errorf("memory %s needs a token counter", cfg.ID)
	case m.reader.Store == nil:
		return fmt.Errorf("memory %s needs a store", cfg.ID)
	case cfg.Live < 0:
		return fmt.Errorf("memory %s: the number of live sessions must not be negative", cfg.ID)
	case cfg.Lease < 0:
		return fmt.Errorf("memory %s: the lease must be positive, not %s", cfg.ID, cfg.Lease)
	case cfg.TTL < 0:
		return fmt.Errorf("memory %s: ttl must be positive, not %s", cfg.ID, cfg.TTL)
	case cfg.KeepSystemFirst && !m.kind.Supports("keep_system_first"):
		return m.unsupported("keep_system_first")
	case m.scope != "" && m.scope != SessionScope && m.scope.width() == 0:
		return fmt.Errorf("memory %s: scope must be session, user or app, not %q", cfg.ID, m.scope)
	case !m.turns.valid():
		return fmt.Errorf("memory %s: turns must be queue, reject or interrupt, not %q", cfg.ID, m.turns)
	}
	if err := m.checkCompaction(cfg.Compact); err != nil {
		return err
	}
	switch {
	case m.context == nil:
		return nil
	case !m.kind.Supports("context"):
		return m.unsupported("context")
	}
	if err := m.context.Check(); err != nil {
		return fmt.Errorf("memory %s: %w", m.id, err)
	}
	return nil
}

// checkCompaction returns an error for settings that are invalid or that the policy does not have.
func (m *Memory) checkCompaction(c window.Compaction) error {
	for _, setting := range []struct {
		key  string
		used bool
	}{{"shorten_tool_results", c.ToolResults > 0}, {"compact_at", c.At != 0}, {"drop_images", c.ImageRounds > 0}} {
		if setting.used && !m.kind.Supports(setting.key) {
			return m.unsupported(setting.key)
		}
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("memory %s: %w", m.id, err)
	}
	if m.context == nil && c.At > 0 {
		return fmt.Errorf("memory %s: compact_at needs a context that summarizes what leaves", m.id)
	}
	return nil
}

// unsupported is the error for a setting of other policies.
func (m *Memory) unsupported(key string) error {
	owners, _ := spec.PoliciesWith(key)
	names := make([]string, len(owners))
	for i, p := range owners {
		names[i] = string(p)
	}
	last := len(names) - 1
	text := "policy " + names[0]
	if last > 0 {
		text = "the policies " + strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return fmt.Errorf("memory %s: %s is for %s, not %s", m.id, key, text, m.kind.Name)
}

// ID returns the memory's id in the document.
func (m *Memory) ID() string { return m.id }

// Policy returns the name of the memory's policy.
func (m *Memory) Policy() spec.Policy { return m.kind.Name }

// Count returns the tokens of a text as this memory counts them.
func (m *Memory) Count(text string) int { return m.reader.Counter.Count(text) }

// Tokens returns the size of a message as this memory counts it.
func (m *Memory) Tokens(msg chat.Message) int { return window.Tokens(m.reader.Counter, msg) }

// SetLimits changes the limits of all sessions. With policy flush the new ones
// apply from the next message on, with the others to reads as well.
func (m *Memory) SetLimits(l window.Limits) error {
	p, err := m.build(l)
	if err != nil {
		return fmt.Errorf("memory %s: %w", m.id, err)
	}
	m.policy.Store(&p)
	return nil
}

// build returns the policy with limits.
func (m *Memory) build(l window.Limits) (window.Policy, error) {
	p, err := m.kind.With(l)
	if c, ok := p.(window.CompactingPolicy); ok && err == nil && m.compactAt > 0 {
		c.CompactAt(m.compactAt)
	}
	return p, err
}

// policyOf returns the policy with the current limits of a session.
func (m *Memory) policyOf(session string) (window.Policy, error) {
	if m.limitsOf == nil {
		return *m.policy.Load(), nil
	}
	p, err := m.build(m.limitsOf(session))
	if err != nil {
		return nil, fmt.Errorf("memory %s, session %q: %w", m.id, session, err)
	}
	return p, nil
}

// Scope returns what a conversation of the memory belongs to.
func (m *Memory) Scope() Scope { return cmp.Or(m.scope, SessionScope) }

// Conversation returns the id under which the conversation of a session is stored; it
// differs from that of the session if several sessions are one conversation.
func (m *Memory) Conversation(session string) string { return m.scope.Session(session) }

func (m *Memory) key(session string) store.Key {
	return store.Key{Memory: m.id, Session: m.scope.Session(session)}
}

// moment returns the current time in the precision of stores: microseconds, UTC.
func (m *Memory) moment() time.Time { return time.UnixMicro(m.now().UnixMicro()).UTC() }

// lock waits for a session; unlock must follow.
func (m *Memory) lock(ctx context.Context, session string) (*locks.Session, error) {
	s, err := m.sessions.Lock(ctx, m.scope.Session(session))
	if err != nil {
		return nil, m.waitError(session, err)
	}
	return s, nil
}

func (m *Memory) waitError(session string, err error) error {
	return fmt.Errorf("memory %s: waiting for the turn of session %q: %w", m.id, session, err)
}

// record reports an access to the auditor.
func (m *Memory) record(ctx context.Context, r AuditRecord) error {
	if m.audit == nil {
		return nil
	}
	r.Time, r.Memory = m.moment(), m.id
	r.User, _ = SplitSession(r.Session)
	r.Actor = Actor(ctx)
	if err := m.audit(r); err != nil {
		return fmt.Errorf("memory %s, session %q: the access cannot be recorded in the audit log: %w", m.id, r.Session, err)
	}
	return nil
}

// newParts returns an empty list with room for n parts, that of a turn that has ended if there is one.
func (m *Memory) newParts(n int) *prefix.Parts {
	parts, _ := m.partsPool.Get().(*prefix.Parts)
	if parts == nil {
		parts = new(prefix.Parts)
	}
	*parts = slices.Grow((*parts)[:0], n)
	return parts
}

// recycle gives a list to turns to come.
func (m *Memory) recycle(parts *prefix.Parts) {
	clear(*parts) // of texts that would not be released
	m.partsPool.Put(parts)
}
