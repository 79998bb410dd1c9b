package memory

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/memory/internal/window"
)

// TurnPolicy decides what Begin does while another turn of the session is active. Queue
// orders the turns of this process; those of other processes run at the same time, and the
// later commit follows the earlier one. The others hold for all processes that
// use the store, by a lease in the session. Append, Set and Clear always wait: they are short.
type TurnPolicy string

// The policies for a second turn.
const (
	Queue     TurnPolicy = "queue"     // it waits
	Reject    TurnPolicy = "reject"    // it fails with a *BusyError
	Interrupt TurnPolicy = "interrupt" // it cancels the older turn
)

func (t TurnPolicy) valid() bool { return t == Queue || t == Reject || t == Interrupt }

// BusyError reports that another turn of the session is active (concurrent_turns: reject).
type BusyError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names the memory and the session.
func (e *BusyError) Error() string {
	return fmt.Sprintf("memory %s: session %q is busy with another turn (concurrent_turns: reject)", e.Memory, e.Session)
}

// InterruptedError reports that a newer turn replaced this one (turns:
// interrupt). It is the cause with which the older turn's context ends.
type InterruptedError struct {
	Memory  string // the memory's id
	Session string // the session's id

	expired bool // concurrent_turns: reject; the lease was not renewed in time, or the session was deleted
}

// Error names the memory and the session.
func (e *InterruptedError) Error() string {
	if e.expired {
		return fmt.Sprintf("memory %s: session %q was deleted, or another process began a turn after the lease of this one had ended (concurrent_turns: reject)", e.Memory, e.Session)
	}
	return fmt.Sprintf("memory %s: a newer turn of session %q replaced this one (concurrent_turns: interrupt)", e.Memory, e.Session)
}

const (
	defaultCachedSessions = 1024
	maxCachedBytes        = 64 << 20 // of all cached views of one memory
)

// sessionTable has the sessions that are in use in this process: their locks,
// and the views of those that were used last, so that an append need not read
// the window again. A session that is neither locked nor cached has no entry.
type sessionTable struct {
	mu       sync.Mutex
	byID     map[string]*liveSession
	recent   list.List // of *liveSession with a view, the most recent first; empty if maxViews is 0
	maxViews int       // 0: no bound
	bytes    int       // of the views in recent
}

// liveSession is an entry of the table; the table's mutex guards it.
type liveSession struct {
	id      string
	locked  bool
	cancel  context.CancelCauseFunc // cancels the active turn; nil if Begin did not lock, or waits in a queue
	waiters []*waiter               // in the order in which they came
	cached  bool                    // view is the session as it was known last
	view    window.View
	element *list.Element // in sessionTable.recent
}

// waiter waits for the lock of a session.
type waiter struct {
	ready  chan struct{}           // closed when it has the lock, or err is set
	err    error                   // why it will not get the lock
	cancel context.CancelCauseFunc // as in liveSession
}

// errBusy is returned by tryLock if another turn holds the session.
var errBusy = errors.New("busy")

// lock waits for the session. If it returns no error, unlock must follow.
func (l *sessionTable) lock(ctx context.Context, id string) (*liveSession, error) {
	return l.wait(ctx, id, nil, nil)
}

// lockWithView is lock. It copies the cached view of the session to v, and reports
// whether there is one.
func (l *sessionTable) lockWithView(ctx context.Context, id string, v *window.View) (s *liveSession, cached bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	if s = l.getOrCreate(id); !s.locked {
		s.locked = true
		cached = l.copyView(s, v)
		l.mu.Unlock()
		return s, cached, nil
	}
	l.mu.Unlock()
	if s, err = l.lock(ctx, id); err != nil {
		return nil, false, err
	}
	return s, l.viewOf(s, v), nil
}

// tryLock locks the session unless another turn is active: then it returns errBusy.
func (l *sessionTable) tryLock(ctx context.Context, id string) (*liveSession, error) {
	return l.wait(ctx, id, func(error) {}, errBusy)
}

// preempt cancels the active turn and those that wait, with the cause, and then
// waits for the session. A later call cancels this turn by cancel.
func (l *sessionTable) preempt(ctx context.Context, id string, cancel context.CancelCauseFunc, cause error) (*liveSession, error) {
	return l.wait(ctx, id, cancel, cause)
}

func (l *sessionTable) wait(ctx context.Context, id string, cancel context.CancelCauseFunc, cause error) (*liveSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	s := l.getOrCreate(id)
	if !s.locked {
		s.locked, s.cancel = true, cancel
		l.mu.Unlock()
		return s, nil
	}
	if cause != nil && s.cancel != nil {
		if errors.Is(cause, errBusy) {
			l.mu.Unlock()
			return nil, errBusy
		}
		s.cancel(cause)
	}
	if cause != nil && !errors.Is(cause, errBusy) {
		s.cancelWaiters(cause)
	}
	w := &waiter{ready: make(chan struct{}), cancel: cancel}
	s.waiters = append(s.waiters, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		return s, w.err
	case <-ctx.Done():
		if l.abandon(s, w) {
			return nil, w.err
		}
		return nil, ctx.Err()
	}
}

func (l *sessionTable) getOrCreate(id string) *liveSession {
	s := l.byID[id]
	if s == nil {
		if l.byID == nil {
			l.byID = map[string]*liveSession{}
		}
		s = &liveSession{id: id}
		l.byID[id] = s
	}
	return s
}

// cancelWaiters makes the turns that wait fail with the cause.
func (s *liveSession) cancelWaiters(cause error) {
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if w.cancel == nil {
			return false
		}
		w.err = cause
		close(w.ready)
		return true
	})
}

// abandon removes a waiter whose context ended, or passes on the lock that it
// received at the same moment. It reports whether the waiter received an error instead.
func (l *sessionTable) abandon(s *liveSession, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
		return false
	}
	if w.err != nil {
		return true
	}
	l.passLock(s)
	return false
}

func (l *sessionTable) unlock(s *liveSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passLock(s)
}

// unlockWithView is setViewOf and unlock.
func (l *sessionTable) unlockWithView(s *liveSession, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(s, v)
	l.evict()
	l.passLock(s)
}

// passLock gives the lock to the first waiter.
func (l *sessionTable) passLock(s *liveSession) {
	s.locked, s.cancel = false, nil
	if len(s.waiters) == 0 {
		l.dropIfUnused(s)
		return
	}
	first := s.waiters[0]
	s.waiters = slices.Delete(s.waiters, 0, 1)
	s.locked, s.cancel = true, first.cancel
	close(first.ready)
}

func (l *sessionTable) dropIfUnused(s *liveSession) {
	if !s.locked && !s.cached {
		delete(l.byID, s.id)
	}
}

// view copies the cached view of a session to v, and reports whether there is one.
func (l *sessionTable) view(id string, v *window.View) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	return s != nil && l.copyView(s, v)
}

// viewOf is view for a session that the caller has locked.
func (l *sessionTable) viewOf(s *liveSession, v *window.View) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copyView(s, v)
}

func (l *sessionTable) copyView(s *liveSession, v *window.View) bool {
	if !s.cached {
		return false
	}
	l.touch(s)
	*v = s.view
	return true
}

func (l *sessionTable) touch(s *liveSession) {
	if s.element != nil {
		l.recent.MoveToFront(s.element)
	}
}

// setView caches a copy of a view; nil removes the cached one.
func (l *sessionTable) setView(id string, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v == nil && l.byID[id] == nil {
		return
	}
	l.set(l.getOrCreate(id), v)
	l.evict()
}

// setViewOf is setView for a session that the caller has locked.
func (l *sessionTable) setViewOf(s *liveSession, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(s, v)
	l.evict()
}

// evict removes the views that were used least recently until the bounds are met.
func (l *sessionTable) evict() {
	for l.recent.Len() > l.maxViews || l.bytes > maxCachedBytes && l.recent.Len() > 1 {
		l.set(l.recent.Back().Value.(*liveSession), nil)
	}
}

func (l *sessionTable) set(s *liveSession, v *window.View) {
	if s.element != nil {
		l.bytes -= s.view.Bytes
	}
	if s.cached = v != nil; s.cached {
		s.view = *v
	} else {
		s.view = window.View{}
	}
	switch {
	case v == nil:
		if s.element != nil {
			l.recent.Remove(s.element)
			s.element = nil
		}
		l.dropIfUnused(s)
	case l.maxViews == 0: // no bound, no list
	case s.element == nil:
		s.element = l.recent.PushFront(s)
		l.bytes += v.Bytes
	default:
		l.touch(s)
		l.bytes += v.Bytes
	}
}
