package store

import (
	"context"
	"sync"
	"time"
)

// Clock is implemented by stores that several machines share. Leases of turns end by this
// clock; with other stores by that of the machine.
type Clock interface {
	// Time returns the time of the store.
	Time(ctx context.Context) (time.Time, error)
}

// IsServer reports whether a store is one that several machines share: a Clock that wraps no
// other store, or a store that wraps one.
func IsServer(s Store) bool {
	for {
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = wrapper.Unwrap()
	}
	_, ok := s.(Clock)
	return ok
}

// TimeOf returns the time of a store: that of this machine unless it is a Clock.
func TimeOf(ctx context.Context, store Store) (time.Time, error) {
	if c, ok := store.(Clock); ok {
		return c.Time(ctx)
	}
	return time.Now(), ctx.Err()
}

// clockAge is how long a reading of the store's clock is used: this process counts on from it.
const clockAge = time.Minute

// ServerClock returns the time of a store with few calls of it. A clock of this machine that
// is set does not change it.
type ServerClock struct {
	mu     sync.Mutex
	read   time.Time // when the store was asked, with a monotonic reading
	server time.Time // its answer
}

// Now returns the time of the store.
func (c *ServerClock) Now(ctx context.Context, store Store) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || time.Since(c.read) > clockAge {
		now, err := TimeOf(ctx, store)
		if err != nil {
			return now, err
		}
		c.read, c.server = time.Now(), now
	}
	return c.server.Add(time.Since(c.read)), nil
}
