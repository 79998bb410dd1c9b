// Package locks has the sessions that are in use in this process: who may change them, in
// which order, and their last known views.
package locks

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/memory/window"
)

// maxCachedBytes bounds all cached views of one memory.
const maxCachedBytes = 64 << 20

// Table has the sessions that are in use in this process: their locks, and the views of
// the last used ones, so that an append need not read the window again. A session that is
// neither locked nor cached has no entry.
type Table struct {
	mu       sync.Mutex
	byID     map[string]*Session
	recent   list.List // of *Session with a view, the most recent first; empty if MaxViews is 0
	MaxViews int       // the most views, 0: no bound; set before the first use
	bytes    int       // of the views in recent
}

// Session is an entry of the table; the table's mutex guards it.
type Session struct {
	id      string
	locked  bool
	cancel  context.CancelCauseFunc // cancels the active turn; nil if Begin did not lock, or waits in a queue
	waiters []*waiter               // in the order in which they came
	view    *window.View            // the session as it was known last, nil if it is not cached
	space   window.View             // view, unless that was set during a turn
	element *list.Element           // in Table.recent
}

// waiter waits for the lock of a session.
type waiter struct {
	ready  chan struct{}           // closed when it has the lock, or err is set
	err    error                   // why it will not get the lock
	cancel context.CancelCauseFunc // as in Session
}

// ErrBusy is returned by TryLock if another turn holds the session.
var ErrBusy = errors.New("busy")

// Lock waits for the session. If it returns no error, Unlock must follow.
func (l *Table) Lock(ctx context.Context, id string) (*Session, error) {
	return l.wait(ctx, id, nil, nil)
}

// LockWithView is Lock, and returns the cached view of the session, nil for none. The view
// does not change until UnlockWithView.
func (l *Table) LockWithView(ctx context.Context, id string) (s *Session, v *window.View, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	if s = l.getOrCreate(id); !s.locked {
		s.locked = true
		l.touch(s)
		v = s.view
		l.mu.Unlock()
		return s, v, nil
	}
	l.mu.Unlock()
	if s, err = l.Lock(ctx, id); err != nil {
		return nil, nil, err
	}
	return s, l.viewOf(s), nil
}

// TryLock locks the session unless another turn is active: then it returns ErrBusy.
func (l *Table) TryLock(ctx context.Context, id string) (*Session, error) {
	return l.wait(ctx, id, func(error) {}, ErrBusy)
}

// Preempt cancels the active and the waiting turns with the cause, and then waits for the
// session. A later call cancels this turn by cancel.
func (l *Table) Preempt(ctx context.Context, id string, cancel context.CancelCauseFunc, cause error) (*Session, error) {
	return l.wait(ctx, id, cancel, cause)
}

func (l *Table) wait(ctx context.Context, id string, cancel context.CancelCauseFunc, cause error) (*Session, error) {
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
		if errors.Is(cause, ErrBusy) {
			l.mu.Unlock()
			return nil, ErrBusy
		}
		s.cancel(cause)
	}
	if cause != nil && !errors.Is(cause, ErrBusy) {
		s.cancelWaiters(cause)
	}
	w := &waiter{ready: make(chan struct{}), cancel: cancel}
	s.waiters = append(s.waiters, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		if w.err != nil || ctx.Err() == nil {
			return s, w.err
		}
	case <-ctx.Done():
	}
	if l.abandon(s, w) {
		return nil, w.err
	}
	return nil, ctx.Err()
}

func (l *Table) getOrCreate(id string) *Session {
	s := l.byID[id]
	if s == nil {
		if l.byID == nil {
			l.byID = map[string]*Session{}
		}
		s = &Session{id: id}
		l.byID[id] = s
	}
	return s
}

// cancelWaiters makes the turns that wait fail with the cause.
func (s *Session) cancelWaiters(cause error) {
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
func (l *Table) abandon(s *Session, w *waiter) bool {
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

// Unlock gives the session to the next one that waits.
func (l *Table) Unlock(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passLock(s)
}

// UnlockWithView is SetViewOf and Unlock. The view that LockWithView returned is not used
// after it.
func (l *Table) UnlockWithView(s *Session, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.locked = false
	l.set(s, v)
	l.evict()
	l.passLock(s)
}

// passLock gives the lock to the first waiter.
func (l *Table) passLock(s *Session) {
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

func (l *Table) dropIfUnused(s *Session) {
	if !s.locked && s.view == nil {
		delete(l.byID, s.id)
	}
}

// View copies the cached view of a session to v, and reports whether there is one.
func (l *Table) View(id string, v *window.View) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	if s == nil || s.view == nil {
		return false
	}
	l.touch(s)
	*v = *s.view
	return true
}

// viewOf returns the cached view of a session that the caller has locked, nil for none.
func (l *Table) viewOf(s *Session) *window.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touch(s)
	return s.view
}

func (l *Table) touch(s *Session) {
	if s.element != nil {
		l.recent.MoveToFront(s.element)
	}
}

// SetView caches a copy of a view; nil removes the cached one.
func (l *Table) SetView(id string, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v == nil && l.byID[id] == nil {
		return
	}
	l.set(l.getOrCreate(id), v)
	l.evict()
}

// SetViewOf is SetView for a session that the caller has locked.
func (l *Table) SetViewOf(s *Session, v *window.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(s, v)
	l.evict()
}

// evict removes the views that were used least recently until the bounds are met.
func (l *Table) evict() {
	for l.recent.Len() > l.MaxViews || l.bytes > maxCachedBytes && l.recent.Len() > 1 {
		l.set(l.recent.Back().Value.(*Session), nil)
	}
}

// set caches a copy of v; without v nothing is cached. The former view of a locked session
// stays as it is: the turn may use it.
func (l *Table) set(s *Session, v *window.View) {
	if s.element != nil {
		l.bytes -= s.view.Bytes
	}
	if v == nil {
		s.view = nil
		if !s.locked {
			s.space = window.View{}
		}
		if s.element != nil {
			l.recent.Remove(s.element)
			s.element = nil
		}
		l.dropIfUnused(s)
		return
	}
	if s.view = &s.space; s.locked {
		s.view = &window.View{}
	}
	*s.view = *v
	switch {
	case l.MaxViews == 0: // no bound, no list
		return
	case s.element == nil:
		s.element = l.recent.PushFront(s)
	default:
		l.touch(s)
	}
	l.bytes += v.Bytes
}
