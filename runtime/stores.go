package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/storeurl"
	"github.com/qtype-dev/qtype/internal/sharedlimit"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
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
	address, err := storeurl.Address(a.opts.Parts.Stores, s.Type, url)
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

// State returns what the application stores besides conversations: the records of its server,
// shared limits and cached results. They are in the store of the first memory, or in the default store if there
// is none, and belong to the application as its memories do: by its id, or the namespace that the store declares.
func (a *App) State() store.Application { return a.state }

// namespace returns what the id of a memory is prefixed with in its store: the id of the
// application, unless the store declares that it shares memories with others.
func (a *App) namespace(app *spec.Application, m *spec.Memory) string {
	store := m.Store.Store.To
	if m.Store.IsZero() && len(app.Stores) > 0 {
		store = app.Stores[0]
	}
	if store == nil || store.Namespace == "" {
		return a.spec.ID
	}
	return store.Namespace
}

// forgetSessions deletes the records of sessions of which no memory has a conversation any more.
func (a *App) forgetSessions(ctx context.Context, sessions []string) error {
	some, err := appstate.HasSessions(ctx, a.state)
	for _, session := range sessions {
		if err != nil || !some {
			return err
		}
		left := false
		for _, m := range a.memories {
			head, readErr := m.Head(ctx, session)
			left, err = left || head.Version != 0, errors.Join(err, readErr)
		}
		if err == nil && !left {
			err = appstate.ForgetSession(ctx, a.state, session)
		}
	}
	return err
}

// newState returns the State of an App with its memories.
func (a *App) newState() store.Application {
	for _, m := range a.spec.Memories {
		if s := a.memoryStore[m.ID]; s != nil {
			return store.NewApplication(s, a.namespace(a.spec, m))
		}
	}
	s := a.opts.Store
	if s == nil {
		s = a.opts.Default
	}
	return store.NewApplication(s, a.spec.ID)
}

// sharedQuota returns the quota of a key that all processes of the application share; nil if
// its State is not in a store of several machines.
func (a *App) sharedQuota(key string) model.Quota {
	if state := a.State(); store.IsServer(state.Store) {
		return sharedlimit.NewQuota(state, key)
	}
	return nil
}

// database returns the shared source of a step's rows. The source connects at first
// use.
func (a *App) database(s *spec.SQLSource) (*sqldb.Source, error) {
	a.databases.mu.Lock()
	defer a.databases.mu.Unlock()
	if made, ok := a.databases.open[s]; ok {
		return made, nil
	}
	address, err := a.secret(s.Connection)
	if err != nil {
		return nil, err
	}
	made, err := sqldb.Open(a.background(), address, s.Query, a.databaseAccess(s))
	if err != nil {
		return nil, err
	}
	if a.databases.open == nil {
		a.databases.open = map[*spec.SQLSource]*sqldb.Source{}
	}
	a.databases.open[s] = made
	return made, nil
}

// databaseAccess returns how a step's connections log in.
func (a *App) databaseAccess(s *spec.SQLSource) sqldb.Access {
	access := sqldb.Access{Env: awsauth.Options{Getenv: a.Getenv, Secret: a.secret, Policy: a.opts.Policy}, Supervisor: a.opts.Supervisor}
	if s.Auth.To != nil {
		access.Kind = spec.TypeName(s.Auth.To)
	}
	switch auth := s.Auth.To.(type) {
	case spec.LoginAuth:
		user, secret := auth.Login()
		access.Login = func(context.Context, *sqlquery.URL) (string, string, error) {
			password, err := a.secret(secret) // again for each connection: it may have been rotated
			return user, password, err
		}
	case *spec.AWSAuth:
		access.AWS = auth
	case *spec.VertexAuth:
		access.Google = auth
	case *spec.AzureAuth:
		access.Azure = auth
	}
	return access
}

// close closes all connections.
func (d *databases) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.open {
		errs = append(errs, s.Close())
	}
	d.open = nil
	return errors.Join(errs...)
}
