package runtime

import (
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/stores"
	"github.com/qtype-dev/qtype/spec"
)

// storeOf is where a memory of an application lives: where it says, else in the
// application's first store, else where the Options say. Options.Store comes
// before all of them. Stores are shared by address, and touched when they are
// first used.
func (a *App) storeOf(app *spec.Application, m *spec.Memory) (memory.Store, error) {
	switch {
	case a.opts.Store != nil:
		return a.opts.Store, nil
	case m.Store.Store.To != nil:
		return a.declaredStore(m.Store.Store.To)
	case !m.Store.URL.IsZero():
		if m.Store.URL.Ref != nil {
			return nil, missing(m, "memory "+m.ID, setting{key: "store", used: true, what: "a store from a secret manager"})
		}
		s, err := a.stores.Open(m.Store.URL.Reveal(), a.storeOptions()...)
		if err != nil {
			return nil, fmt.Errorf("%smemory %s: %w", at(m), m.ID, err)
		}
		return s, nil
	case len(app.Stores) > 0:
		return a.declaredStore(app.Stores[0])
	}
	return a.opts.Default, nil
}

func (a *App) declaredStore(s *spec.Store) (memory.Store, error) {
	if s.URL.Ref != nil {
		return nil, missing(s, "store "+s.ID, setting{key: "url", used: true, what: "a url from a secret manager"})
	}
	address, err := stores.Address(s.Type, s.URL.Reveal())
	if err == nil {
		var opened memory.Store
		if opened, err = a.stores.Open(address, a.storeOptions()...); err == nil {
			return opened, nil
		}
	}
	return nil, fmt.Errorf("%sstore %s: %w", at(s), s.ID, err)
}

func (a *App) storeOptions() []stores.Option {
	if a.opts.Warn == nil {
		return nil
	}
	return []stores.Option{stores.Warn(a.opts.Warn)}
}

// Place names where the memory of that id lives, for a person and without
// credentials; it is empty where no memory has the id.
func (a *App) Place(id string) string {
	if s, ok := a.places[id]; ok {
		return stores.Place(s)
	}
	return ""
}

// closeStores closes the stores that the App opened and those that it was given.
func (a *App) closeStores() error {
	errs := []error{a.stores.Close()}
	for _, s := range []memory.Store{a.opts.Store, a.opts.Default} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
