package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// TurnPolicy says what Begin does while another turn of the session goes on in this
// process. Append, Set and Clear always wait: they are over in a moment.
type TurnPolicy string

// What a second caller gets (reference memory.md 6).
const (
	Queue     TurnPolicy = "queue"     // it waits
	Reject    TurnPolicy = "reject"    // a *BusyError
	Interrupt TurnPolicy = "interrupt" // the turn: the older one is cancelled
)

func (t TurnPolicy) valid() bool { return t == Queue || t == Reject || t == Interrupt }

// BusyError says that a session has a turn that goes on (concurrent_turns: reject).
type BusyError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names both.
func (e *BusyError) Error() string {
	return fmt.Sprintf("memory %s: session %q is busy with another turn (concurrent_turns: reject)", e.Memory, e.Session)
}

// InterruptedError says that a newer turn took a session over (turns:
// interrupt). It is the cause of the end of the older turn's context.
type InterruptedError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names both.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("memory %s: a newer turn of session %q took over (concurrent_turns: interrupt)", e.Memory, e.Session)
}

// sessionLocks let one turn of a session run at a time, in the order in which they
// came. A session that nobody uses takes no room. The zero value is ready.
type sessionLocks struct {
	mu     sync.Mutex
	queues map[string][]*waiter               // by session: those who wait; present while a turn runs
	busy   atomic.Int64                       // how many there are in queues
	turns  map[string]context.CancelCauseFunc // by session: how the turn that runs is ended; only for Reject and Interrupt
}

// waiter is one who waits for a lane.
type waiter struct {
	ready  chan struct{}           // closed when its turn has come, or will not come
	err    error                   // why it will not come
	cancel context.CancelCauseFunc // nil for one who does not hold the lane as a turn
}

// lock waits for the session's lane. Where it returns nil, leave must follow.
func (l *sessionLocks) lock(ctx context.Context, session string) error {
	return l.wait(ctx, session, nil, nil)
}

// errBusy is what wait answers to a turn that would have to wait for another.
var errBusy = errors.New("busy")

// tryLock enters, unless another turn runs: then it answers errBusy.
func (l *sessionLocks) tryLock(ctx context.Context, session string) error {
	return l.wait(ctx, session, func(error) {}, errBusy)
}

// preempt enters once it has ended the turn that runs, and those that wait,
// for the cause. A later one ends this turn by cancel.
func (l *sessionLocks) preempt(ctx context.Context, session string, cancel context.CancelCauseFunc, cause error) error {
	return l.wait(ctx, session, cancel, cause)
}

func (l *sessionLocks) wait(ctx context.Context, session string, cancel context.CancelCauseFunc, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	queue, busy := l.queues[session]
	if !busy {
		if l.queues == nil {
			l.queues = map[string][]*waiter{}
		}
		l.queues[session] = nil
		l.busy.Add(1)
		l.grant(session, cancel)
		l.mu.Unlock()
		return nil
	}
	if cause != nil {
		if errors.Is(cause, errBusy) && l.turns[session] != nil {
			l.mu.Unlock()
			return errBusy
		}
		queue = l.cancelHolders(session, cause)
	}
	w := &waiter{ready: make(chan struct{}), cancel: cancel}
	l.queues[session] = append(queue, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
		if l.abandonWait(session, w) {
			return w.err
		}
		return ctx.Err()
	}
}

func (l *sessionLocks) grant(session string, cancel context.CancelCauseFunc) {
	if cancel == nil {
		return
	}
	if l.turns == nil {
		l.turns = map[string]context.CancelCauseFunc{}
	}
	l.turns[session] = cancel
}

// cancelHolders ends the turn that runs and those that wait. It answers who still waits.
func (l *sessionLocks) cancelHolders(session string, cause error) []*waiter {
	queue := l.queues[session]
	if errors.Is(cause, errBusy) {
		return queue // nobody but an append is in the lane
	}
	if cancel := l.turns[session]; cancel != nil {
		cancel(cause)
	}
	return slices.DeleteFunc(queue, func(w *waiter) bool {
		if w.cancel == nil {
			return false
		}
		w.err = cause
		close(w.ready)
		return true
	})
}

// abandonWait takes a waiter out of the queue, or passes on the turn that it was
// given in the same moment. It tells whether the waiter was told an error instead.
func (l *sessionLocks) abandonWait(session string, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[session]
	if i := slices.Index(queue, w); i >= 0 {
		l.queues[session] = slices.Delete(queue, i, i+1)
		return false
	}
	if w.err != nil {
		return true
	}
	l.handOff(session)
	return false
}

// unlock ends the session's turn.
func (l *sessionLocks) unlock(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handOff(session)
}

func (l *sessionLocks) handOff(session string) {
	delete(l.turns, session)
	queue := l.queues[session]
	if len(queue) == 0 {
		delete(l.queues, session)
		l.busy.Add(-1)
		return
	}
	first := queue[0]
	queue[0] = nil
	l.queues[session] = queue[1:]
	l.grant(session, first.cancel)
	close(first.ready)
}
