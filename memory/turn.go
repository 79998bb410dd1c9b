package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/chat"
)

// Turn is what one call of a step does to a session: the new input, every tool
// call and result, and the answer. It ends with Commit or Abort; until then no
// other turn of the session begins, in this process. It is safe for concurrent use.
type Turn struct {
	memory *Memory
	key    Key
	ctx    context.Context // Begin's, for what Add must look up

	mu     sync.Mutex
	base   *view    // the session when the turn began
	staged []*Entry // what was said since
	system string   // the step's system message
	ended  bool
}

var errEnded = errors.New("the turn has ended")

// Begin waits until the session is free, first come, first served, and begins a
// turn. When ctx ends it stops waiting. One of Commit and Abort must follow;
// `defer turn.Abort(ctx, …)` is right, for Abort after Commit does nothing.
// A turn within a turn of the same session and memory would wait for ever.
func (m *Memory) Begin(ctx context.Context, session string) (*Turn, error) {
	return m.open(ctx, session, m.fresh)
}

// open begins a turn on the view that look finds.
func (m *Memory) open(ctx context.Context, session string, look func(context.Context, Key) (*view, error)) (*Turn, error) {
	if err := m.lanes.enter(ctx, session); err != nil {
		return nil, fmt.Errorf("memory %s: waiting for the turn of session %q: %w", m.id, session, err)
	}
	key := m.key(session)
	base, err := look(ctx, key)
	if err != nil {
		m.lanes.leave(session)
		return nil, err
	}
	return &Turn{memory: m, key: key, ctx: ctx, base: base}, nil
}

// System sets the system message of this turn: a step's system_message. It
// stands first in the window unless the session holds a system message that was
// said as a message (reference steps.md 3, LLMInference), and is not part of the queue.
func (t *Turn) System(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.system = valid(text)
}

// Add says messages; nothing is kept before Commit. A message whose id the
// session holds already is not said twice; one without an id gets one. A
// message of role system takes the place of the session's system message.
func (t *Turn) Add(msgs ...chat.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	if err := check(msgs); err != nil {
		return err
	}
	held, err := t.memory.held(t.ctx, t.key, ids(msgs))
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if m.ID != "" && (held[m.ID] || t.stagedID(m.ID)) {
			continue
		}
		t.staged = append(t.staged, t.memory.entry(m))
	}
	return nil
}

func (t *Turn) stagedID(id string) bool {
	return slices.ContainsFunc(t.staged, func(e *Entry) bool { return e.Message.ID == id })
}

// Window is what the model is sent now: the system message, where there is one,
// then the window with what was said in this turn, fitted to the limits.
func (t *Turn) Window() ([]chat.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errEnded
	}
	out := make([]chat.Message, 1, 1+len(t.base.entries)+len(t.staged))
	if system := t.systemMessage(); system != nil {
		out[0] = *system
	} else {
		out = out[:0]
	}
	for _, e := range t.fitted() {
		out = append(out, e.Message)
	}
	return out, nil
}

// systemMessage is the newest one that was said, else the step's.
func (t *Turn) systemMessage() *chat.Message {
	for _, e := range slices.Backward(t.staged) {
		if e.Message.Role == chat.System {
			return &e.Message
		}
	}
	switch {
	case t.base.system != nil:
		return &t.base.system.Message
	case t.system != "":
		return &chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: t.system}}}
	}
	return nil
}

// fitted is the window as a Commit of what was said so far would leave it.
func (t *Turn) fitted() []*Entry {
	next := *t.base // its array may be written behind its end: this turn alone does
	own := len(next.entries)
	for _, e := range t.staged {
		if e.Message.Role != chat.System {
			next.push(e)
			next.state.Tokens += e.Tokens
		}
	}
	if own == len(next.entries) {
		return next.entries
	}
	newest := newestRound(next.entries, own, userUpTo(&next, t.base, own))
	return next.entries[t.memory.policy.Load().fit(next.entries, next.state.Tokens, newest):]
}

// Commit keeps what was said, whole or not at all, and ends the turn. After an
// error the turn is still open: try again or Abort. Where another process wrote
// to the session meanwhile, this turn comes after what it said.
func (t *Turn) Commit(ctx context.Context) error { return t.commit(ctx, false) }

func (t *Turn) commit(ctx context.Context, each bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errEnded
	}
	err := t.memory.change(ctx, t.key, t.base, func(base *view) (*step, error) {
		if err := t.rebase(ctx, base); err != nil || len(t.staged) == 0 {
			return nil, err
		}
		s := t.memory.said(base, t.staged, each)
		s.bring(t.system)
		return s, nil
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
	var staged []string
	for _, e := range t.staged {
		staged = append(staged, e.Message.ID)
	}
	held, err := t.memory.held(ctx, t.key, staged)
	if err != nil {
		return err
	}
	t.base = base
	var rest []*Entry
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
		why = strings.Join(strings.Fields(valid(reason.Error())), " ") // one line
	}
	return t.memory.change(ctx, t.key, t.base, func(base *view) (*step, error) {
		if err := t.rebase(ctx, base); err != nil || len(t.staged) == 0 {
			return nil, err
		}
		return t.memory.failed(base, t.staged, why), nil
	})
}

func (t *Turn) end() {
	t.ended = true
	t.memory.lanes.leave(t.key.Session)
}
