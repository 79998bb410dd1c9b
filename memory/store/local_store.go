package store

import "context"

// LocalStore is implemented by stores that keep their sessions in this process: a memory
// shares entries with them, and need not look a session up for each change.
type LocalStore interface {
	Store
	// ApplyLocal is Apply, and returns the session. known is the session as an earlier call
	// returned it, nil to look it up. The store keeps none of the slices of the change.
	ApplyLocal(ctx context.Context, key Key, known LocalSession, c *Change) (LocalSession, error)
}

// LocalSession is a session of a LocalStore.
type LocalSession interface {
	// Version returns the session's version, 0 if the store does not hold it any more.
	Version() int64
}
