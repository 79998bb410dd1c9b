package stepcache

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Cache is the cache of one directory, with the results that are being computed. It is
// safe for concurrent use.
type Cache struct {
	store  *Store
	warn   func(string) // may be nil
	broken atomic.Bool  // it cannot be used, which was reported

	mu       sync.Mutex
	inflight map[inflightKey]*inflight
}

// NewCache returns the cache of a directory; see Open. warn, which may be nil, receives
// one line if the cache cannot be used.
func NewCache(dir string, warn func(string)) *Cache {
	return &Cache{store: Open(dir, warn), warn: warn, inflight: map[inflightKey]*inflight{}}
}

// Close closes the file. The error of a cache that cannot be used was reported.
func (c *Cache) Close() error {
	if err := c.store.Close(); err != nil && !c.broken.Load() {
		return err
	}
	return nil
}

// inflightKey identifies a result.
type inflightKey struct {
	scope Scope
	key   Key
}

// inflight is a result that is being computed while other rows wait for it. Before
// done is closed, either entry is set, or err, which all of them get, or neither:
// then each row is processed separately.
type inflight struct {
	done  chan struct{}
	entry []byte
	err   error
}

// warnOnce reports the first failure of the cache. The cache is an optimization,
// so the run continues without it.
func (c *Cache) warnOnce(err error) {
	if c.broken.CompareAndSwap(false, true) && c.warn != nil {
		c.warn(fmt.Sprintf("%v; continuing without the cache", err))
	}
}

// startOrWait registers the caller as the one that computes the result, or returns
// the computation in flight.
func (c *Cache) startOrWait(id inflightKey) (f *inflight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.inflight[id]; ok {
		return f, false
	}
	f = &inflight{done: make(chan struct{})}
	c.inflight[id] = f
	return f, true
}

// complete ends a computation.
func (c *Cache) complete(id inflightKey, f *inflight) {
	c.mu.Lock()
	delete(c.inflight, id)
	c.mu.Unlock()
	close(f.done)
}
