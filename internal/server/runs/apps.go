package runs

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/runtime"
)

// appTable counts the runs of each App, so that one that was replaced is closed when
// its last run has ended. The Manager's mutex guards it.
type appTable struct {
	users   map[*runtime.App]int
	retired []retiredApp
}

// retiredApp is an App that was replaced, and what else is closed with it.
type retiredApp struct {
	app  *runtime.App
	done func()
}

func (t *appTable) use(app *runtime.App) { t.users[app]++ }

func (t *appTable) release(app *runtime.App) {
	if t.users[app]--; t.users[app] == 0 {
		delete(t.users, app)
	}
	t.closeRetired()
}

// closeRetired closes the replaced applications without runs.
func (t *appTable) closeRetired() {
	t.retired = slices.DeleteFunc(t.retired, func(r retiredApp) bool {
		if t.users[r.app] > 0 {
			return false
		}
		go func() {
			r.done()
			_ = r.app.Close(context.Background()) // no caller is left for the error
		}()
		return true
	})
}

// Retire calls done and closes an App when its last run has ended.
func (m *Manager) Retire(app *runtime.App, done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.retired = append(m.apps.retired, retiredApp{app, done})
	m.apps.closeRetired()
}

// Use keeps an App open, also if it is replaced, until Release is called.
func (m *Manager) Use(app *runtime.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.use(app)
}

// Release ends a Use.
func (m *Manager) Release(app *runtime.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.apps.release(app)
}
