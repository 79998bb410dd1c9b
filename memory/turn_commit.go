package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Turn runs f in a turn of the session. It commits if f returns nil; otherwise
// it aborts with f's error as the reason, and returns it.
func (m *Memory) Turn(ctx context.Context, session string, f func(*Turn) error) (err error) {
	t, err := m.Begin(ctx, session)
	if err != nil {
		return err
	}
	reason := errors.New("the turn panicked")
	defer func() { err = errors.Join(err, t.Abort(context.WithoutCancel(ctx), reason)) }()
	if reason = f(t); reason == nil {
		reason = t.Commit(ctx)
	}
	return reason
}

// Commit stores what the turn added, as a whole or not at all, and ends it.
// After an error the turn is still open: try again, or Abort. If another process
// wrote to the session in the meantime, this turn follows its messages. A turn
// that a newer one replaced fails with an *InterruptedError.
func (t *Turn) Commit(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commit(ctx, false)
}

// commit is Commit for a caller that has locked the turn; with each set every message is an
// append in itself.
func (t *Turn) commit(ctx context.Context, each bool) error {
	if t.ended {
		return errEnded
	}
	if err := t.interrupted(); err != nil {
		return err
	}
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return err
		}
	}
	t.keepContext()
	if d, ok := t.memory.reader.Store.(store.Deduplicator); !ok || !d.Distinct() {
		if err := t.dropKnown(ctx, t.base); err != nil {
			return err
		}
	}
	var after func()
	if t.ahead != nil {
		after = t.ahead()
	}
	err := t.store(ctx, each)
	for wait := t.commitRetry(each); err != nil && wait.again(ctx, err); {
		err = t.store(ctx, each)
	}
	if err == nil {
		t.end()
		if after != nil {
			after()
		}
	}
	return err
}

// keepContext makes the context of the last call a part of its question, which is stored with it.
func (t *Turn) keepContext() {
	if !t.memory.keepsContext || t.context == nil {
		return
	}
	id, text := t.context.Kept()
	i := slices.IndexFunc(t.staged, func(e *store.Entry) bool { return e.Message.ID == id })
	if text == "" || i < 0 || t.staged[i].Message.Context != "" {
		return
	}
	e := *t.staged[i] // callers may know the former one
	e.Message.Context = text
	added := window.TokensOf(t.memory.reader.Counter, &e.Message) - e.Tokens
	e.Tokens += added
	t.staged[i] = &e
	t.others = max(t.others-added, 0) // it counts as a message from now on
}

// store makes the change of a commit. After an error it is unknown whether it was made;
// the next call finds out.
func (t *Turn) store(ctx context.Context, each bool) error {
	return t.apply(ctx, func(base *window.View, n *change.Transition) (changed bool, err error) {
		if err := t.rebase(ctx, base); err != nil {
			return false, err
		}
		if t.strict && !t.done {
			if err := t.checkPairs(ctx); err != nil {
				return false, err
			}
		}
		if !t.done {
			changed, err = t.plan(n, each)
		}
		if err == nil && changed && t.lease != nil && !t.lease.owns(t.base.Values) {
			err = t.lease.lost(t.base.Values)
		}
		return t.releaseLease(n, changed), err
	}, nil)
}

// window.CheckPairs drops staged messages that the session has already, and returns a
// *BalanceError if the others cannot follow the session.
func (t *Turn) checkPairs(ctx context.Context) error {
	open, err := t.memory.reader.OpenCalls(ctx, t.key, t.base)
	if err != nil {
		return err
	}
	p := window.Pairing{Open: open}
	for i, e := range t.staged {
		switch {
		case p.Add(&e.Message):
		case t.unchecked:
			if err := t.dropKnown(ctx, t.base); err != nil {
				return err
			}
			return t.checkPairs(ctx)
		default:
			return p.Violation(t.key, i, &e.Message)
		}
	}
	return nil
}

// releaseLease adds to the turn's last change that it gives up its lease, and reports
// whether there is anything to change.
func (t *Turn) releaseLease(n *change.Transition, changed bool) bool {
	if t.lease == nil || !t.lease.owns(t.base.Values) {
		return changed
	}
	if !changed {
		n.Begin(t.base, t.memory.moment())
	}
	n.SetValue(change.LeaseValue, nil)
	return true
}

// commitRetry returns how long a commit tries to store the turn after the time limit of the
// store: for a while if the turn has an answer, because a model was paid for it.
func (t *Turn) commitRetry(each bool) commitRetry {
	isAnswer := func(e *store.Entry) bool { return e.Message.Role == chat.Assistant }
	if each || !slices.ContainsFunc(t.staged, isAnswer) {
		return commitRetry{}
	}
	return commitRetry{until: time.Now().Add(answerRetryTime)}
}

// plan makes n what Commit changes, and reports whether there is a change.
func (t *Turn) plan(n *change.Transition, each bool) (changed bool, err error) {
	m := t.memory
	a := change.Addition{Entries: t.staged, Each: each, Step: t.step, Others: t.others}
	if each {
		a.Step = t.base.Step
	}
	now := m.moment()
	changed = n.Add(t.policy, m.kind.Name, t.base, a, now)
	if set := change.NewValues(t.base, t.set); len(set) > 0 {
		if !changed {
			n.Begin(t.base, now)
			n.Next.State.Extend(now) // setting a variable extends the ttl
		}
		if err := n.SetVariables(m.id, set); err != nil {
			return false, err
		}
		changed = true
	}
	if changed {
		n.RecordOperation(t.operation, t.noteOf(n))
		n.SetFactors(t.factors)
		n.RecordCall(t.call)
		t.storeContext(n)
	}
	return changed, nil
}

// noteOf returns what is stored with the idempotency key: how often messages leave the window, and the note.
func (t *Turn) noteOf(n *change.Transition) string {
	return fmt.Sprintf("%d;%s", n.Next.State.Flushes-t.base.State.Flushes, t.note)
}

// storeContext adds the values of the context that have changed.
func (t *Turn) storeContext(n *change.Transition) {
	if t.context == nil {
		return
	}
	for name, value := range t.context.Values() {
		if !bytes.Equal(n.Next.Values[name], value) {
			n.SetValue(name, value)
		}
	}
}

// Abort ends the turn and leaves the window as it was. The history gets the
// turn's messages, marked as failed for the reason. The turn has ended even if
// Abort returns an error because the history could not be written. After Commit
// it does nothing.
func (t *Turn) Abort(ctx context.Context, reason error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil
	}
	defer t.end()
	if errors.Is(reason, ErrSuspended) {
		t.staged = nil
	}
	if len(t.staged) == 0 && (t.lease == nil || t.lease.created) {
		return t.leaveNothing(ctx)
	}
	text := "the turn was aborted"
	if reason != nil {
		text = textfmt.OneLine(window.ValidText(reason.Error()))
	}
	if err := t.dropKnown(ctx, t.base); err != nil {
		return err
	}
	return t.apply(ctx, func(base *window.View, n *change.Transition) (bool, error) {
		if err := t.rebase(ctx, base); err != nil {
			return false, err
		}
		if len(t.staged) == 0 || t.done {
			return t.releaseLease(n, false), nil
		}
		n.Fail(t.base, t.staged, text, t.memory.moment())
		n.SetFactors(t.factors)
		n.RecordCall(t.call)
		return t.releaseLease(n, true), nil
	}, nil)
}

// leaveNothing ends a turn without messages. A session that has only its lease is deleted.
func (t *Turn) leaveNothing(ctx context.Context) error {
	if t.lease == nil || t.base.State.Last > 0 {
		return nil
	}
	t.lease.end() // so that the version stays
	version := t.base.Version
	for range maxAttempts {
		err := t.memory.remove(ctx, t.key, version, 0)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		head, err := t.memory.reader.Store.Head(ctx, t.key)
		if err != nil || head.State.Last > 0 || !t.lease.owns(head.Values) {
			return err // others use the session
		}
		version = head.Version // the lease was renewed
	}
	return nil // the lease ends by itself
}
