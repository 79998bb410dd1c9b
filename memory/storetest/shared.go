package storetest

import "github.com/qtype-dev/qtype/memory/store"

// Shared returns a store that several applications of a test use: closing it does nothing.
func Shared(s store.Store) store.Store { return sharedStore{s} }

type sharedStore struct{ store.Store }

func (sharedStore) Close() error { return nil }
