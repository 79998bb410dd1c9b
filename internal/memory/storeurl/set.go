package storeurl

import (
	"errors"
	"sync"

	"github.com/qtype-dev/qtype/memory/store"
)

// Set holds open stores and shares them by address and keys. The zero value is
// ready to use. It is safe for concurrent use.
type Set struct {
	mu     sync.Mutex
	stores map[string]store.Store // by address and key IDs
}

// Open returns the store at an address, and opens it the first time.
func (s *Set) Open(address string, opts ...Option) (store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := address
	if keys := newOptions(opts).keys; keys != nil {
		key += "\x00" + keys.ID()
	}
	if backend, ok := s.stores[key]; ok {
		return backend, nil
	}
	backend, err := Open(address, opts...)
	if err != nil {
		return nil, err
	}
	if s.stores == nil {
		s.stores = map[string]store.Store{}
	}
	s.stores[key] = backend
	return backend, nil
}

// Close closes all stores.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, store := range s.stores {
		errs = append(errs, store.Close())
	}
	s.stores = nil
	return errors.Join(errs...)
}
