package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/locks"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// version returns the version of the cached view of a session, 0 for none.
func version(l *locks.Table, id string) int64 {
	var v window.View
	if !l.View(id, &v) {
		return 0
	}
	return v.Version
}

// TestTable_ViewOfLockedSession checks that a turn keeps the view of the session that it has locked
// if another one is cached, or it is dropped, in the meantime.
func TestTable_ViewOfLockedSession(t *testing.T) {
	meanwhile := map[string]struct {
		change func(l *locks.Table)
		cached int64
	}{
		"a reader caches a newer view": {func(l *locks.Table) { l.SetView("a", &window.View{Version: 2}) }, 2},
		"the view is removed":          {func(l *locks.Table) { l.SetView("a", nil) }, 0},
		"another session takes its place": {func(l *locks.Table) {
			l.SetView("b", &window.View{Version: 7})
		}, 0},
	}
	for name, c := range meanwhile {
		t.Run(name, func(t *testing.T) {
			l := &locks.Table{MaxViews: 1}
			l.SetView("a", &window.View{Version: 1})
			s, v, err := l.LockWithView(t.Context(), "a")
			testkit.Must(t, err)
			c.change(l)
			if v == nil || v.Version != 1 {
				t.Fatalf("the turn has %+v", v)
			}
			if got := version(l, "a"); got != c.cached {
				t.Errorf("version %d is cached, want %d", got, c.cached)
			}
			l.UnlockWithView(s, &window.View{Version: 3})
			if got := version(l, "a"); got != 3 {
				t.Errorf("version %d is cached after the turn", got)
			}
		})
	}
}

// late is a context that ends while a turn waits with it. Its channel does not say so, as if a select had found the lock first.
type late struct {
	context.Context
	waiting chan struct{} // closed when a turn waits
	ended   bool
}

func (c *late) Done() <-chan struct{} {
	c.ended = true
	close(c.waiting)
	return nil
}

func (c *late) Err() error {
	if c.ended {
		return context.Canceled
	}
	return nil
}

// TestTable_CanceledWithLock: a turn that ends while it waits does not get the lock, and the next one does.
func TestTable_CanceledWithLock(t *testing.T) {
	var l locks.Table
	first, err := l.Lock(t.Context(), "s")
	testkit.Must(t, err)
	ctx, ended := &late{Context: t.Context(), waiting: make(chan struct{})}, make(chan error)
	go func() {
		_, err := l.Lock(ctx, "s")
		ended <- err
	}()
	<-ctx.waiting
	l.Unlock(first)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the turn that was canceled: %v", err)
	}
	next, err := l.TryLock(t.Context(), "s")
	testkit.Must(t, err)
	l.Unlock(next)
}
