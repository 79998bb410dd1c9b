package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// corrections returns what the session and the turn know of models.
func (t *Turn) corrections() budget.Factors { return t.stored.Of(t.base.Values).Raised(t.factors) }

// refreshContext updates the context before a call of the model.
func (t *Turn) refreshContext() error {
	if t.memory.context == nil {
		return nil
	}
	if t.context != nil {
		return t.context.Refresh()
	}
	t.context, t.ahead = t.memory.context.Begin(contextSession{t}), t.prepareNext
	if t.repeat == nil {
		return t.context.Refresh()
	}
	refreshed := false
	state, err := t.repeat(func() ([]byte, error) {
		refreshed = true
		if err := t.context.Refresh(); err != nil {
			return nil, err
		}
		return t.context.State()
	})
	if err != nil || refreshed {
		return err
	}
	if err := t.context.Restore(state); err != nil {
		return fmt.Errorf("memory %s: the recorded context of the turn is damaged: %w", t.memory.id, err)
	}
	return t.context.Refresh()
}

// prepareNext returns what the context does in the background, after the turn, so that the next one need not wait; nil for
// nothing. In a short session, all messages remain in the window.
func (t *Turn) prepareNext() func() {
	m, key, state, last := t.memory, t.key, &t.base.State, t.base.State.Last // the base is another turn's as soon as this one has ended
	p, ok := m.context.(Preparer)
	if used, limit, _ := t.policy.Usage(state.InWindow, state.Tokens); !ok || m.background == nil || state.Flushes == 0 && 2*used < limit {
		return nil
	}
	return func() {
		p.Prepare(key, last, func(work func(func() (ContextSession, error))) bool {
			return m.background(func(ctx context.Context) {
				work(func() (ContextSession, error) {
					base, policy, err := m.committed(ctx, key.Session, new(window.View))
					return contextSession{&Turn{memory: m, key: key, ctx: ctx, base: base, policy: policy}}, err
				})
			})
		})
	}
}

// Repeat makes a turn that may be repeated after an interruption send the same context in each
// attempt. It must be called before the first call of a model.
func (t *Turn) Repeat(r Repeater) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.repeat = r
}

// withContext cuts the context to the room that the messages leave, and returns
// what is sent, with a report of each block.
func (t *Turn) withContext(c CallContext, b Budget, v *window.View, sent []*store.Entry) ([]chat.Message, []store.ContextBlockReport, error) {
	room, err := t.contextRoom(c, v, sent)
	if err != nil {
		return nil, nil, err
	}
	call := &t.call.Call
	call.Room = room
	if b.ContextWindow > 0 {
		room = min(room, t.corrections().InputRoom(b)-b.Added()-v.SystemTokens()-t.call.Tokens)
	}
	c.Shrink(max(room, 0))
	call.Estimate += c.Tokens()
	report := c.Report()
	call.Context = slices.Clone(report)
	for i := range call.Context {
		call.Context[i].Text = "" // stores do not encrypt events
	}
	return c.Messages(sent), report, nil
}

// contextRoom returns how many tokens the messages leave for the context.
func (t *Turn) contextRoom(c CallContext, v *window.View, sent []*store.Entry) (int, error) {
	p, ok := t.policy.(window.ContextPolicy)
	if !ok {
		return 0, fmt.Errorf("memory %s: policy %s has no room for context", t.memory.id, t.memory.kind.Name)
	}
	messages, system, limit := window.SumTokens(sent), v.SystemTokens(), p.ContextLimit()
	room := max(limit-messages-system, 0)
	if fixed := c.MinTokens(); fixed > room {
		return 0, &ContextError{Memory: t.memory.id, Limit: limit, Messages: messages, System: system, Context: fixed}
	}
	return room, nil
}

// PreviewContext returns the context that the next call of the session would
// get; nil without context blocks.
func (m *Memory) PreviewContext(ctx context.Context, session string) (*ContextPreview, error) {
	if m.context == nil {
		return nil, nil
	}
	base, p, err := m.committed(ctx, session, new(window.View))
	if err != nil {
		return nil, err
	}
	t := &Turn{memory: m, key: m.key(session), ctx: ctx, base: base, policy: p}
	sent := window.Compacted(p, base).Entries
	c := m.context.Begin(contextSession{t}).Assemble(base.SystemEntry(), sent, true)
	preview := &ContextPreview{}
	if preview.Room, preview.Refused = t.contextRoom(c, base, sent); preview.Refused == nil {
		c.Shrink(preview.Room)
	}
	preview.Parts, preview.Tokens = c.Report(), c.Tokens()
	return preview, nil
}

// committed returns a session as the store has it, empty if it has expired, and
// its policy. space is as for reload.
func (m *Memory) committed(ctx context.Context, session string, space *window.View) (*window.View, window.Policy, error) {
	p, err := m.policyOf(session)
	if err != nil {
		return nil, nil, err
	}
	v, err := m.reload(ctx, m.key(session), space)
	if err != nil {
		return nil, nil, err
	}
	if m.expired(v.State) {
		v = m.reader.NewView()
	}
	return v, p, nil
}

// contextSession is the ContextSession of a turn. Its methods are called while
// the turn's mutex is locked.
type contextSession struct{ turn *Turn }

func (s contextSession) Context() context.Context { return s.turn.ctx }
func (s contextSession) Key() store.Key           { return s.turn.key }
func (s contextSession) Store() store.Store       { return s.turn.memory.reader.Store }
func (s contextSession) Tokens(msg *chat.Message) int {
	return window.TokensOf(s.turn.memory.reader.Counter, msg)
}
func (s contextSession) Count(text string) int { return s.turn.memory.Count(text) }
func (s contextSession) Now() time.Time        { return s.turn.memory.moment() }

func (s contextSession) Variables(scope Scope) ([]change.Variable, error) {
	return s.turn.variablesIn(s.turn.ctx, scope)
}

func (s contextSession) KeepsContext() bool { return s.turn.memory.keepsContext }

func (s contextSession) IsShared(scope Scope) bool { return s.turn.sharedSession(scope) != "" }

func (s contextSession) Shared(scope Scope) (store.Head, error) {
	return s.turn.memory.sharedHead(s.turn.ctx, scope.Session(s.turn.key.Session))
}

func (s contextSession) UpdateShared(scope Scope, name string, change func(store.Head) ([]byte, bool)) error {
	return s.turn.memory.UpdateValue(s.turn.ctx, scope.Session(s.turn.key.Session), name, change)
}

func (s contextSession) Others(scope Scope) iter.Seq2[store.SessionHead, error] {
	return s.turn.memory.ListOf(s.turn.ctx, scope, s.turn.key.Session)
}

func (s contextSession) EntriesOf(l store.SessionHead, from int64) iter.Seq2[*store.Entry, error] {
	return s.turn.memory.entriesOf(s.turn.ctx, l, from)
}

func (s contextSession) Head() store.Head {
	b := s.turn.base
	return store.Head{Version: b.Version, State: b.State, Values: b.Values}
}

func (s contextSession) NewestUser() *chat.Message {
	for _, entries := range [][]*store.Entry{s.turn.staged, s.turn.base.Entries} {
		if i := window.LastUser(entries); i >= 0 {
			return &entries[i].Message
		}
	}
	return nil
}

func (s contextSession) FirstSent() int64 {
	v, sel, _ := s.turn.fitted()
	pins := window.PinnedPositions(v)
	for _, e := range sel.Left.Rest(v.Entries) {
		if e.Seq > 0 && !pins.Has(e.Seq) {
			return e.Seq
		}
	}
	return s.turn.base.State.Last + 1 // the turn's messages have no position yet
}

func (s contextSession) Evicted(from int64) iter.Seq2[*store.Entry, error] {
	last := s.FirstSent() - 1
	if last < from {
		return func(func(*store.Entry, error) bool) {}
	}
	return s.turn.memory.reader.Current(s.Context(), s.Key(), s.turn.base.State, from, last)
}

func (s contextSession) Update(name string, update func(store.Head) ([]byte, store.Event, bool)) error {
	t := s.turn
	var next window.View
	err := t.apply(t.ctx, func(base *window.View, n *change.Transition) (bool, error) {
		if err := t.rebase(t.ctx, base); err != nil {
			return false, err
		}
		value, event, ok := update(s.Head())
		if !ok || t.base.Version == 0 {
			return false, nil
		}
		n.Begin(t.base, t.memory.moment())
		n.SetValue(name, value)
		event.Turn = t.base.State.Turns + 1
		n.Change.Events = []store.Event{event}
		return true, nil
	}, &next)
	if err == nil && next.Version != 0 {
		t.base = &next
	}
	return err
}
