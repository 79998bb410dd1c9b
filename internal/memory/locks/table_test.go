package locks_test

import (
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
