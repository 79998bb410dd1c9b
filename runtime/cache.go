package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// caches are the caches of an App, one for each folder, opened when they are
// first used.
type caches struct {
	mu   sync.Mutex
	open map[string]*sharedCache
}

// sharedCache is the cache of one folder and what goes on in it.
type sharedCache struct {
	store  *stepcache.Store
	warn   func(string)
	broken atomic.Bool // it cannot be used; that was said

	mu      sync.Mutex
	flights map[inflightKey]*inflight
}

// inflightKey is one result that somebody works on.
type inflightKey struct {
	scope stepcache.Scope
	key   stepcache.Key
}

// inflight is the work on one result, for which others wait. What came of it is
// set before done is closed: an entry, an error that all of them get, or
// neither, and then each works for itself.
type inflight struct {
	done  chan struct{}
	entry []byte
	err   error
}

// cacheOf is the cache of a folder.
func (a *App) cacheOf(folder string) *sharedCache {
	if whole, err := filepath.Abs(folder); err == nil {
		folder = whole
	}
	a.caches.mu.Lock()
	defer a.caches.mu.Unlock()
	if a.caches.open == nil {
		a.caches.open = map[string]*sharedCache{}
	}
	c, ok := a.caches.open[folder]
	if !ok {
		c = &sharedCache{store: stepcache.Open(folder), warn: a.opts.Warn, flights: map[inflightKey]*inflight{}}
		a.caches.open[folder] = c
	}
	return c
}

// closeCaches closes what was opened.
func (a *App) closeCaches() error {
	a.caches.mu.Lock()
	defer a.caches.mu.Unlock()
	var errs []error
	for _, c := range a.caches.open {
		if err := c.store.Close(); err != nil && !c.broken.Load() {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// warnOnce says once that the cache cannot be used. A cache saves work and
// decides nothing, so the run goes on without it.
func (c *sharedCache) warnOnce(err error) {
	if c.broken.CompareAndSwap(false, true) && c.warn != nil {
		c.warn(fmt.Sprintf("%v; the run goes on without its results", err))
	}
}

// startOrWait tells whether the caller is the one that works on a result, and if not
// who is.
func (c *sharedCache) startOrWait(id inflightKey) (f *inflight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[id]; ok {
		return f, false
	}
	f = &inflight{done: make(chan struct{})}
	c.flights[id] = f
	return f, true
}

// complete ends a flight.
func (c *sharedCache) complete(id inflightKey, f *inflight) {
	c.mu.Lock()
	delete(c.flights, id)
	c.mu.Unlock()
	close(f.done)
}

// cacheable tells whether a step's results may be kept: not those of a step
// that speaks in a memory, itself or through a flow, because what it answers
// depends on what was said before, and an answer from elsewhere would not be
// remembered (QT916).
func cacheable(s spec.Step) bool { return s.Common().CacheConfig != nil && !usesMemory(s) }

// withCache puts a cache in front of a step that asks for one. Steps over
// groups of rows have none.
func (a *App) withCache(s spec.Step, n *node, l *layout) {
	if n.step == nil || !cacheable(s) {
		return
	}
	base, cfg := s.Common(), s.Common().CacheConfig
	c := &cachedStep{
		step: n.step, count: n.count, cache: a.cacheOf(cmp.Or(cfg.Directory, spec.CacheDirectory)), errors: cfg.OnError == "Cache",
		scope:   stepcache.Scope{Namespace: cfg.Namespace, Step: base.ID, Version: cfg.Version},
		policy:  stepcache.Policy{Compress: cfg.Compress, MaxBytes: int64(cfg.MaxSizeMB) << 20},
		inputs:  ports(l, base.Inputs, base.DerivedInputs),
		outputs: ports(l, base.Outputs, base.DerivedOutputs),
	}
	if cfg.TTL != nil {
		c.policy.TTL = time.Duration(*cfg.TTL) * time.Second
	}
	if cfg.KeyedBy != "inputs" {
		digest := a.digest(s)
		c.digest = digest[:]
	}
	n.step = c
}

// cachedStep answers rows from the cache and keeps what the step makes of the
// others. Equal rows that come while one of them is worked on wait for it.
type cachedStep struct {
	step    steps.Step
	count   *counter
	cache   *sharedCache
	scope   stepcache.Scope
	policy  stepcache.Policy
	digest  []byte // of the step's configuration; nil where the inputs alone count
	errors  bool   // results of rows that failed are kept, too
	inputs  []port
	outputs []port
}

// Process answers the row from the cache, waits for an equal row, or lets the
// step work.
func (c *cachedStep) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	id, ok := c.id(row)
	if !ok || c.cache.broken.Load() {
		c.miss(ctx, row)
		return c.step.Process(ctx, row, emit)
	}
	f, leads := c.cache.startOrWait(id)
	if leads {
		return c.compute(ctx, row, &cacheFill{cachedStep: c, id: id, flight: f, emit: emit})
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.entry != nil {
		if res, err := readEntry(f.entry, c.outputs); err == nil {
			c.hit(ctx, row)
			return res.replay(row, c.outputs, emit)
		}
	}
	c.miss(ctx, row)
	if f.err != nil {
		return f.err
	}
	return c.step.Process(ctx, row, emit)
}

// compute looks into the cache, and where it has nothing lets the step work.
func (c *cachedStep) compute(ctx context.Context, row *steps.Row, a *cacheFill) error {
	defer a.publish() // also when the step panics
	if entry, res := c.lookup(ctx, a.id); res != nil {
		a.flight.entry = entry
		a.publish()
		c.hit(ctx, row)
		return res.replay(row, c.outputs, a.emit)
	}
	c.miss(ctx, row)
	err := c.step.Process(ctx, row, a.buffer)
	if a.stopped {
		return err
	}
	a.finish(ctx, err)
	if stopped := a.release(); stopped != nil {
		return stopped
	}
	return err
}

// lookup finds an entry; a damaged one is removed.
func (c *cachedStep) lookup(ctx context.Context, id inflightKey) ([]byte, *cacheEntry) {
	entry, found, err := c.cache.store.Get(ctx, id.scope, id.key, c.policy)
	if err != nil && ctx.Err() == nil {
		c.cache.warnOnce(err)
	}
	if err != nil || !found {
		return nil, nil
	}
	res, err := readEntry(entry, c.outputs)
	if err == nil {
		return entry, res
	}
	if err := c.cache.store.Drop(ctx, id.scope, id.key); err != nil && ctx.Err() == nil {
		c.cache.warnOnce(err)
	}
	return nil, nil
}

// id is what a row's result is found by; none where an input was never set.
func (c *cachedStep) id(row *steps.Row) (inflightKey, bool) {
	text := append(make([]byte, 0, 512), c.digest...)
	for _, p := range c.inputs {
		v := row.Values[p.at]
		if v == value.Unset {
			return inflightKey{}, false
		}
		text = appendValue(append(value.AppendJSON(text, p.name), ':'), v)
	}
	return inflightKey{scope: c.scope, key: sha256.Sum256(text)}, true
}

func (c *cachedStep) hit(ctx context.Context, row *steps.Row) {
	c.count.hits.Add(1)
	steps.Report(ctx, steps.Event{Kind: steps.EventCacheHit, Step: c.scope.Step, Session: row.Session, Row: row.Number})
}

func (c *cachedStep) miss(ctx context.Context, row *steps.Row) {
	c.count.misses.Add(1)
	steps.Report(ctx, steps.Event{Kind: steps.EventCacheMiss, Step: c.scope.Step, Session: row.Session, Row: row.Number})
}
