package runtime

import (
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/encrypted"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storeurl"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// storeOf returns the store of a memory: Options.Store, else the store that the memory
// names, else the application's first store, else Options.Default. Memories with one
// address share a store, which is opened at first use.
func (a *App) storeOf(app *spec.Application, m *spec.Memory) (memory.Store, error) {
	switch {
	case a.opts.Store != nil:
		return a.opts.Store, nil
	case m.Store.Store.To != nil:
		return a.declaredStore(m.Store.Store.To)
	case !m.Store.URL.IsZero():
		s, err := a.storeAt(m.Store.URL)
		if err != nil {
			return nil, fmt.Errorf("%smemory %s: %w", positionPrefix(m), m.ID, err)
		}
		return s, nil
	case len(app.Stores) > 0:
		return a.declaredStore(app.Stores[0])
	}
	return a.opts.Default, nil
}

// storeAt opens the store at an address, which may be a secret.
func (a *App) storeAt(url spec.Secret) (memory.Store, error) {
	address, err := a.secret(url)
	if err != nil {
		return nil, err
	}
	if err := a.opts.Policy.Store(address); err != nil {
		return nil, err
	}
	return a.stores.Open(address, a.storeOptions()...)
}

func (a *App) declaredStore(s *spec.Store) (memory.Store, error) {
	opened, err := a.openDeclared(s)
	if _, ok := errors.AsType[*spec.NotAvailableError](err); err != nil && !ok { // that one has a position
		return nil, fmt.Errorf("%sstore %s: %w", positionPrefix(s), s.ID, err)
	}
	return opened, err
}

func (a *App) openDeclared(s *spec.Store) (memory.Store, error) {
	url, err := a.secret(s.URL)
	if err != nil {
		return nil, err
	}
	address, err := storeurl.Address(s.Type, url)
	if err != nil {
		return nil, err
	}
	if err := a.opts.Policy.Store(address); err != nil {
		return nil, err
	}
	opts := a.storeOptions()
	if s.Encryption != nil {
		keys, err := a.keys(s.Encryption)
		if err != nil {
			return nil, err
		}
		opts = append(opts, storeurl.Encrypt(keys))
	}
	return a.stores.Open(address, opts...)
}

// keys returns the keys of an encrypted store. Empty old keys are ignored: a document can
// name an optional one as ${OLD_KEY:-}.
func (a *App) keys(e *spec.Encryption) (keys encrypted.Keys, err error) {
	keys.AllowUnencrypted = e.AllowUnencrypted
	if keys.Key, err = a.key(e.Key); err != nil {
		return keys, fmt.Errorf("encryption key: %w", err)
	}
	for i, old := range e.OldKeys {
		if old.IsZero() {
			continue
		}
		k, err := a.key(old)
		if err != nil {
			return keys, fmt.Errorf("encryption, old_keys[%d]: %w", i, err)
		}
		keys.Old = append(keys.Old, k)
	}
	return keys, nil
}

func (a *App) key(s spec.Secret) (encrypted.Key, error) {
	text, err := a.secret(s)
	if err != nil {
		return encrypted.Key{}, err
	}
	return encrypted.ParseKey(text)
}

func (a *App) storeOptions() []storeurl.Option {
	return []storeurl.Option{storeurl.Among(a.opts.Parts.Stores), storeurl.Warn(a.opts.Warn)}
}

// StoreOf returns the store of a memory; nil if no memory has the id.
func (a *App) StoreOf(id string) memory.Store { return a.memoryStore[id] }

// Encryption returns that of the store of a memory; nil if it has none.
func (a *App) Encryption(id string) *spec.Encryption {
	for _, m := range a.spec.Memories {
		switch {
		case m.ID != id:
		case m.Store.Store.To != nil:
			return m.Store.Store.To.Encryption
		case m.Store.URL.IsZero() && len(a.spec.Stores) > 0:
			return a.spec.Stores[0].Encryption
		}
	}
	return nil
}

// OpenStore opens the store at an address, with an encryption unless that is nil. The App
// closes it.
func (a *App) OpenStore(address string, e *spec.Encryption) (memory.Store, error) {
	opts := a.storeOptions()
	if e != nil {
		keys, err := a.keys(e)
		if err != nil {
			return nil, err
		}
		opts = append(opts, storeurl.Encrypt(keys))
	}
	return a.stores.Open(address, opts...)
}

// StoreLocation returns the address of the store of a memory, for messages and without
// credentials; "" if no memory has the id.
func (a *App) StoreLocation(id string) string {
	if s, ok := a.memoryStore[id]; ok {
		return storeurl.Location(s)
	}
	return ""
}

// StateStore returns the store of the state of a server, and of shared limits: that of the first
// memory, or the default store if there is none.
func (a *App) StateStore() memory.Store {
	for _, m := range a.spec.Memories {
		if s := a.memoryStore[m.ID]; s != nil {
			return s
		}
	}
	if a.opts.Store != nil {
		return a.opts.Store
	}
	return a.opts.Default
}

// sharedQuota returns the quota of a key that all processes with the StateStore share; nil if
// that is not a store of several machines.
func (a *App) sharedQuota(key string) model.Quota {
	shared := a.sharedStore()
	if shared == nil {
		return nil
	}
	return sharedlimit.NewQuota(shared, key)
}

// sharedStore returns the StateStore if it is one of several machines, nil if it is not.
func (a *App) sharedStore() memory.Store {
	if shared := a.StateStore(); store.IsServer(shared) {
		return shared
	}
	return nil
}
