package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/locks"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Turn is what one call of a step does to a session: the new input, every tool
// call and result, and the answer. It ends with Commit or Abort; until then no
// other turn of the session begins in this process. It is safe for concurrent use.
type Turn struct {
	memory *Memory
	key    store.Key
	live   *locks.Session          // locked by the turn
	ctx    context.Context         // that of Begin; ends when a newer turn takes over
	cancel context.CancelCauseFunc // releases ctx; nil if it is the caller's
	lease  *lease                  // nil with concurrent_turns: queue

	mu        sync.Mutex
	base      *window.View                // the session when the turn began; of open the cached view itself, which only publish changes
	space     window.View                 // base, if it is a copy of the cached view: callers may use a turn of Begin after its end
	policy    window.Policy               // with the limits of that moment
	staged    []*store.Entry              // the messages that were added
	first     [1]*store.Entry             // the array of staged, if the store does not keep the slices of a change
	question  []*store.Entry              // the user messages that the turn began with; nil before the first call of a model
	repeated  []*store.Entry              // user messages of the window that were added again
	step      *store.Entry                // the step's system message, nil for none
	call      *change.CallRecord          // the last call of a model, nil for none
	set       []change.Variable           // the variables that were set; a removed one has no value
	shared    []sharedVariable            // the variables that were set for several sessions
	before    func(context.Context) error // runs before the commit; nil for nothing
	ahead     func() func()               // is called before the commit, and its result after it; both nil for nothing
	stored    budget.Decoded              // what the session knows of the counts of providers, decoded
	factors   budget.Factors              // what the turn learned of the counts of providers; nil for nothing
	others    int                         // with Compaction.At: the most tokens that a call of the turn needed besides messages
	most      int                         // tokens that messages may have after a rejected request, 0 for no limit
	rejected  int                         // number of rejected requests
	suspected suspicion                   // the requests that were rejected without a reason since one was accepted
	context   TurnContext                 // nil without context, and before the first call of a model
	repeat    Repeater                    // records what the context has read; nil records nothing
	operation string                      // the idempotency key, empty for none
	done      bool                        // the session has committed the operation before
	note      string                      // see SetNote
	report    *TurnReport                 // nil if none is wanted
	strict    bool                        // the messages are stored only if calls and results belong together
	unchecked bool                        // some staged messages have ids that the session may have outside its window
	ended     bool
}

// suspicion has the estimated sizes of requests that were rejected without a reason, 0 for none.
type suspicion struct {
	first, newest int // the newest one is the smallest
}

// sharedVariable is a variable that a turn sets for several sessions.
type sharedVariable struct {
	session string // that of the scope
	change.Variable
}

var errEnded = errors.New("the turn has ended")

// Begin begins a turn; most programs call Memory.Turn instead. While another
// turn of the session is active it waits in order of arrival; with Config.Turns
// it fails or cancels the other one. It stops waiting when ctx ends. Commit or
// Abort must follow; `defer turn.Abort(ctx, …)` is right, because Abort after
// Commit does nothing. A turn within a turn of the same session never begins.
func (m *Memory) Begin(ctx context.Context, session string) (*Turn, error) {
	t := &Turn{memory: m, key: m.key(session), ctx: ctx}
	if m.needsLease(ctx) {
		t.ctx, t.cancel = context.WithCancelCause(ctx)
	}
	if err := t.lock(ctx); err != nil {
		t.release()
		return nil, err
	}
	return t.start(ctx, true)
}

// open begins a turn that always waits. With fresh set it checks the cached view against
// the store; otherwise a conflict of Apply shows that it is not.
func (m *Memory) open(ctx context.Context, session string, fresh bool) (*Turn, error) {
	t, _ := m.turnsPool.Get().(*Turn)
	if t == nil {
		t = &Turn{}
	}
	t.memory, t.key, t.ctx = m, m.key(session), ctx
	if m.local != nil {
		t.staged = t.first[:0]
	}
	var err error
	if t.live, t.base, err = m.sessions.LockWithView(ctx, t.key.Session); err != nil {
		return nil, m.waitError(session, err)
	}
	return t.start(ctx, fresh || t.base == nil)
}

// lock locks the session according to Config.Turns.
func (t *Turn) lock(ctx context.Context) (err error) {
	m, session := t.memory, t.key.Session
	switch m.turns {
	case Reject:
		t.live, err = m.sessions.TryLock(ctx, session)
	case Interrupt:
		t.live, err = m.sessions.Preempt(ctx, session, t.cancel, &InterruptedError{Memory: m.id, Session: session})
	default:
		t.live, err = m.sessions.Lock(ctx, session)
	}
	switch _, interrupted := errors.AsType[*InterruptedError](err); {
	case err == nil || interrupted:
		return err
	case errors.Is(err, locks.ErrBusy):
		return &BusyError{Memory: m.id, Session: session}
	}
	return m.waitError(session, err)
}

// start reads the session, which the turn has locked. Unless fresh is set, base is its
// cached view.
func (t *Turn) start(ctx context.Context, fresh bool) (_ *Turn, err error) {
	m := t.memory
	if t.policy, err = m.policyOf(t.key.Session); err == nil {
		if fresh {
			t.base, err = m.reload(ctx, t.key, &t.space)
		}
	}
	if err == nil {
		t.base, err = m.expireIfDue(ctx, t.key, t.base)
	}
	if err == nil {
		t.base, err = m.reader.ExtendBack(ctx, t.key, t.base, t.policy)
	}
	if err == nil && t.cancel != nil {
		t.lease, t.base, err = m.acquire(ctx, t.key, t.base, t.policy, t.cancel)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// Context returns the context of Begin. With concurrent_turns: interrupt it ends when a
// newer turn takes over, with an *InterruptedError as the cause: calls of models
// and tools within the turn should use it.
func (t *Turn) Context() context.Context { return t.ctx }

// interrupted returns the error of a turn that a newer one replaced, otherwise nil.
func (t *Turn) interrupted() error {
	if t.cancel == nil {
		return nil
	}
	if interrupted, ok := errors.AsType[*InterruptedError](context.Cause(t.ctx)); ok {
		return interrupted
	}
	return nil
}

// System sets the system message of this turn: a step's system_message. It is
// used unless the session has a system message that was added as a message, and
// is not part of the history. With message_window and token_window it counts.
func (t *Turn) System(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = window.ValidText(text)
	switch s := t.base.Step; {
	case text == "":
		t.step = nil
	case s != nil && s.Message.Text() == text:
		t.step = s // counted before
	default:
		t.step = t.memory.reader.StepSystem(text)
	}
}

// Add adds messages; Commit stores them. Messages whose id the session has
// already are ignored: at once if they are in the window, otherwise when the turn
// ends. A message without an id gets one. A message of role system replaces the
// session's system message.
func (t *Turn) Add(msgs ...chat.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(msgs)
}

// manyMessages is the number of messages above which their ids are looked up in a map.
const manyMessages = 16

// add is Add for a caller that has locked the turn.
func (t *Turn) add(msgs []chat.Message) error {
	if t.ended {
		return errEnded
	}
	if err := window.CheckMessages(msgs); err != nil {
		return err
	}
	var ids map[string]bool // of staged messages, where many are added
	if len(msgs) > manyMessages {
		ids = make(map[string]bool, len(t.staged)+len(msgs))
		for _, e := range t.staged {
			ids[e.Message.ID] = true
		}
	}
	for i := range msgs {
		if msgs[i].Context != "" { // only the memory adds it
			msgs = slices.Clone(msgs)
			msgs[i].Context = ""
		}
		if id := msgs[i].ID; id != "" {
			if ids[id] || ids == nil && t.isStaged(id) || t.base.Has(id) {
				t.noteRepeated(id)
				continue
			}
			if ids != nil {
				ids[id] = true
			}
			t.unchecked = t.unchecked || !t.base.IsComplete()
		}
		t.staged = append(t.staged, window.NewEntry(t.memory.reader.Counter, msgs[i]))
	}
	return nil
}

// noteRepeated records that a message of the window was added again.
func (t *Turn) noteRepeated(id string) {
	for _, e := range t.base.Entries {
		if e.Message.ID == id && window.IsUser(e) {
			t.repeated = append(t.repeated, e)
		}
	}
}

// Has reports whether the window, or this turn, has a message with an id. Add ignores such
// a message.
func (t *Turn) Has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isStaged(id) || t.base.Has(id)
}

func (t *Turn) isStaged(id string) bool {
	return slices.ContainsFunc(t.staged, func(e *store.Entry) bool { return e.Message.ID == id })
}

// planner describes a change of a session: it prepares n, and reports whether
// there is anything to change.
type planner func(base *window.View, n *change.Transition) (changed bool, err error)

// apply makes one change of the turn's session. plan is called again after a
// conflict. result, if not nil, receives the view after the change; otherwise it is
// the turn's last change, and other turns of the session may begin.
func (t *Turn) apply(ctx context.Context, plan planner, result *window.View) error {
	m, base := t.memory, t.base
	n, _ := m.transitions.Get().(*change.Transition)
	if n == nil {
		n = &change.Transition{}
	}
	defer func() {
		n.Reset(m.local != nil)
		m.transitions.Put(n)
	}()
	for attempt := range maxAttempts {
		changed, err := plan(base, n)
		if err != nil || !changed {
			return err
		}
		n.Change.Version, n.Change.Next, n.Change.State = base.Version, store.NextVersion(base.Version), n.Next.State
		n.Next.Stored, err = m.applyChange(ctx, t.key, base.Stored, &n.Change)
		if err == nil {
			n.Next.Version = n.Change.Next
			t.report.fill(t.policy, t.base, n)
			if result != nil {
				*result = n.Next
				m.sessions.SetViewOf(t.live, &n.Next)
			} else {
				t.publish(&n.Next)
			}
			return nil
		}
		m.sessions.SetViewOf(t.live, nil) // it is unknown what the store has now
		if !store.IsConflict(err) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		if base, err = m.load(ctx, t.key); err != nil {
			return err
		}
	}
	return fmt.Errorf("memory %s, session %q: %w, %d times in a row", m.id, t.key.Session, store.ErrConflict, maxAttempts)
}

// rebase makes base the view that the turn starts from. Messages that the
// session has by now are dropped: another process added them, or an earlier attempt
// of this turn did and the store's response was lost.
func (t *Turn) rebase(ctx context.Context, base *window.View) error {
	if base == t.base {
		return nil
	}
	base, err := t.memory.reader.ExtendBack(ctx, t.key, base, t.policy)
	if err != nil {
		return err
	}
	t.unchecked = true
	if err := t.dropKnown(ctx, base); err != nil {
		return err
	}
	t.base = base
	t.done = change.OperationOf(base.Values, t.operation) != ""
	return nil
}

// dropKnown drops staged messages that the session has already, unless this was done before.
func (t *Turn) dropKnown(ctx context.Context, base *window.View) error {
	if !t.unchecked {
		return nil
	}
	rest, ids, err := t.memory.reader.WithoutKnown(ctx, t.key, base.State, t.staged)
	if err != nil {
		return err
	}
	t.unchecked, t.staged = false, rest
	for t.call != nil && (ids[t.call.First] != "" || ids[t.call.Last] != "") {
		t.call.First, t.call.Last = cmp.Or(ids[t.call.First], t.call.First), cmp.Or(ids[t.call.Last], t.call.Last)
	}
	return nil
}

// close ends a turn of open, without recording it if it is still open. The turn
// must not be used after it.
func (t *Turn) close() {
	if !t.ended {
		t.end()
	}
	m := t.memory
	*t = Turn{}
	m.turnsPool.Put(t)
}

func (t *Turn) end() {
	t.ended = true
	if t.lease != nil {
		t.lease.end()
	}
	if t.live != nil {
		t.memory.sessions.Unlock(t.live)
		t.live = nil
	}
	if t.call != nil && t.call.Parts != nil {
		t.memory.recycle(t.call.Parts)
		t.call.Parts = nil
	}
	t.release()
}

// publish unlocks the session, whose view is v now.
func (t *Turn) publish(v *window.View) {
	t.memory.sessions.UnlockWithView(t.live, v)
	t.live = nil
}

// release frees the resources of the turn's context.
func (t *Turn) release() {
	if t.cancel != nil {
		t.cancel(nil)
	}
}
