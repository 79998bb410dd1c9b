package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Turn is what one call of a step does to a session: the new input, every tool
// call and result, and the answer. It ends with Commit or Abort; until then no
// other turn of the session begins, in this process. It is safe for concurrent use.
type Turn struct {
	memory *Memory
	key    Key
	ctx    context.Context         // Begin's, for what Add must look up; ends when a newer turn takes over
	cancel context.CancelCauseFunc // releases ctx; nil where it is Begin's own

	mu        sync.Mutex
	base      *view          // the session when the turn began
	policy    evictionPolicy // with the limits that held then
	staged    []*Entry       // what was said since
	brought   *Entry         // the step's system message, nil for none
	call      *callRecord    // the last call of a model, nil for none
	set       []Variable     // the variables that were set since, without a value those that were removed
	told      *turnContext   // what the context tells in this turn; nil before the first call of a model
	operation string         // what a retry of this turn would be known by
	done      bool           // the operation was carried out before
	given     bool           // some of staged came with ids that the session may hold beyond its window
	ended     bool
}

var errEnded = errors.New("the turn has ended")

// Begin begins a turn. While another turn of the session goes on it waits, first
// come, first served; with Config.Turns it is refused, or takes over. When ctx
// ends it stops waiting. One of Commit and Abort must follow;
// `defer turn.Abort(ctx, …)` is right, for Abort after Commit does nothing.
// A turn within a turn of the same session and memory would wait for ever.
func (m *Memory) Begin(ctx context.Context, session string) (*Turn, error) {
	t := &Turn{memory: m, key: m.key(session), ctx: ctx}
	if m.turns == Interrupt {
		t.ctx, t.cancel = context.WithCancelCause(ctx)
	}
	if err := m.enter(ctx, t); err != nil {
		t.release()
		return nil, err
	}
	if err := t.start(ctx, m.reload); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// enter takes the session's lane as Config.Turns says.
func (m *Memory) enter(ctx context.Context, t *Turn) error {
	session := t.key.Session
	var err error
	switch m.turns {
	case Reject:
		err = m.lanes.tryLock(ctx, session)
	case Interrupt:
		err = m.lanes.preempt(ctx, session, t.cancel, &InterruptedError{Memory: m.id, Session: session})
	default:
		err = m.lanes.lock(ctx, session)
	}
	var taken *InterruptedError
	switch {
	case err == nil || errors.As(err, &taken):
		return err
	case errors.Is(err, errBusy):
		return &BusyError{Memory: m.id, Session: session}
	}
	return waitTurn(m, session, err)
}

func waitTurn(m *Memory, session string, err error) error {
	return fmt.Errorf("memory %s: waiting for the turn of session %q: %w", m.id, session, err)
}

// open begins a turn that always waits, on the view that look finds.
func (m *Memory) open(ctx context.Context, session string, look func(context.Context, Key) (*view, error)) (*Turn, error) {
	if err := m.lanes.lock(ctx, session); err != nil {
		return nil, waitTurn(m, session, err)
	}
	t := &Turn{memory: m, key: m.key(session), ctx: ctx}
	if err := t.start(ctx, look); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// start looks at the session once the lane is the turn's.
func (t *Turn) start(ctx context.Context, look func(context.Context, Key) (*view, error)) (err error) {
	if t.policy, err = t.memory.policyOf(t.key.Session); err != nil {
		return err
	}
	if t.base, err = look(ctx, t.key); err != nil {
		return err
	}
	if t.base, err = t.memory.expireIfDue(ctx, t.key, t.base); err != nil {
		return err
	}
	t.base, err = t.memory.extendBack(ctx, t.key, t.base, t.policy)
	return err
}

// Context is the one that Begin was given. With concurrent_turns: interrupt it ends when a
// newer turn takes the session over; its cause is an *InterruptedError then.
// What the turn waits for, a model or a tool, should be called with it.
func (t *Turn) Context() context.Context { return t.ctx }

// interrupted is the error of a turn that a newer one took over, else nil.
func (t *Turn) interrupted() error {
	if t.cancel == nil {
		return nil
	}
	var taken *InterruptedError
	if errors.As(context.Cause(t.ctx), &taken) {
		return taken
	}
	return nil
}

// System sets the system message of this turn: a step's system_message. It
// stands first in the window unless the session holds a system message that was
// said as a message (reference steps.md 3, LLMInference), and is not part of the
// queue; with message_window and token_window it counts all the same.
func (t *Turn) System(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = validText(text)
	switch b := t.base.brought; {
	case text == "":
		t.brought = nil
	case b != nil && b.Message.Text() == text:
		t.brought = b // counted before
	default:
		t.brought = t.memory.systemOf(text)
	}
}

// Add says messages; nothing is kept before Commit. A message whose id the
// session holds already is not said twice: one that the window holds is passed
// over at once, one that left the window long ago when the turn ends. One without
// an id gets one. A message of role system takes the place of the session's system message.
func (t *Turn) Add(msgs ...chat.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	if err := checkMessage(msgs); err != nil {
		return err
	}
	for i := range msgs {
		if id := msgs[i].ID; id != "" {
			if t.stagedID(id) || t.base.holds(id) {
				continue
			}
			t.given = t.given || !t.base.isComplete()
		}
		t.staged = append(t.staged, t.memory.entry(msgs[i]))
	}
	return nil
}

func (t *Turn) stagedID(id string) bool {
	return slices.ContainsFunc(t.staged, func(e *Entry) bool { return e.Message.ID == id })
}

// Window is what the model is sent now: the window with what was said in this
// turn, fitted to the limits, and the system message in its place.
func (t *Turn) Window() ([]chat.Message, error) { return t.Fit(Budget{}) }

// fitted is the session as a Commit of what was said so far would leave it; own
// is the index of the turn's first message among the entries that are left.
func (t *Turn) fitted() (next *view, sel selection, own int) {
	v := *t.base // its array may be written behind its end: this turn alone does
	v.brought = t.brought
	own = len(v.entries)
	for _, e := range dropDuplicates(t.policy, t.base.system, t.staged) {
		if isSystem(e) {
			v.system, v.unsaid, v.tail = e, true, 0
		} else {
			v.appendEntry(e)
			v.tail++
		}
	}
	if n := len(v.entries); n > own {
		gone := t.policy.evictCount(&v, own, lastUserBefore(&v, t.base, own))
		v.state.Open = t.policy.countsSystem() && hasOpenCalls(&v, gone)
		v.drop(gone)
		own = max(own-gone, 0)
	}
	return &v, t.policy.selectForCall(&v), own
}

// Commit keeps what was said, whole or not at all, and ends the turn. After an
// error the turn is still open: try again or Abort. Where another process wrote
// to the session meanwhile, this turn comes after what it said. A turn that a
// newer one took over cannot commit: it gets an *InterruptedError.
func (t *Turn) Commit(ctx context.Context) error { return t.commit(ctx, false) }

func (t *Turn) commit(ctx context.Context, each bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	if err := t.interrupted(); err != nil {
		return err
	}
	if d, ok := t.memory.store.(Deduplicator); !ok || !d.Distinct() {
		if err := t.dropKnown(ctx); err != nil {
			return err
		}
	}
	err := t.memory.applyWithRetry(ctx, t.key, t.base, func(base *view) (*transition, error) {
		if err := t.rebase(ctx, base); err != nil || len(t.staged)+len(t.set) == 0 || t.done {
			return nil, err
		}
		what := saying{entries: t.staged, each: each, brought: t.brought}
		if each {
			what.brought = t.base.brought
		}
		s, err := t.memory.applyVariables(t.base, t.memory.appendMessages(t.policy, t.base, what), t.set)
		if err == nil && s != nil {
			s.remember(t.operation)
			s.recordCall(t.call)
		}
		return s, err
	})
	if err == nil {
		t.end()
	}
	return err
}

// rebase puts the turn upon another view than the one it began with. What the
// session holds by now is not said again: another process said it, or an
// earlier attempt of this turn did, though the store could not tell.
func (t *Turn) rebase(ctx context.Context, base *view) error {
	if base == t.base {
		return nil
	}
	base, err := t.memory.extendBack(ctx, t.key, base, t.policy)
	if err != nil {
		return err
	}
	t.given = true
	if err := t.dropKnown(ctx); err != nil {
		return err
	}
	t.base = base
	t.done = base.isApplied(t.operation)
	return nil
}

// dropKnown takes away what the session holds already, as far as that is not known.
func (t *Turn) dropKnown(ctx context.Context) error {
	if !t.given {
		return nil
	}
	var staged []string
	for _, e := range t.staged {
		staged = append(staged, e.Message.ID)
	}
	held, err := t.memory.knownIDs(ctx, t.key, staged)
	if err != nil {
		return err
	}
	t.given = false
	var rest []*Entry // a store may hold the slice of an earlier attempt
	for _, e := range t.staged {
		if !held[e.Message.ID] {
			rest = append(rest, e)
		}
	}
	t.staged = rest
	return nil
}

// Abort ends the turn and leaves the window as it was before. The history keeps
// what was said, marked as failed for the reason. The turn has ended even where
// an error says that the history could not be written. After Commit it does nothing.
func (t *Turn) Abort(ctx context.Context, reason error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	defer t.end()
	why := "the turn was given up"
	if reason != nil {
		why = oneLine(reason.Error())
	}
	if err := t.dropKnown(ctx); err != nil {
		return err
	}
	return t.memory.applyWithRetry(ctx, t.key, t.base, func(base *view) (*transition, error) {
		if err := t.rebase(ctx, base); err != nil || len(t.staged) == 0 || t.done {
			return nil, err
		}
		s := t.memory.recordFailedTurn(t.base, t.staged, why)
		s.recordCall(t.call)
		return s, nil
	})
}

func (t *Turn) end() {
	t.ended = true
	t.memory.lanes.unlock(t.key.Session)
	t.release()
}

// release gives back what Context holds.
func (t *Turn) release() {
	if t.cancel != nil {
		t.cancel(nil)
	}
}
