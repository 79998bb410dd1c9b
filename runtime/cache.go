package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/spec"
)

// caches are the caches of an App by their folders, opened at first use.
type caches struct {
	mu   sync.Mutex
	open map[string]*sharedCache
}

// sharedCache is the cache of one folder, with the results that are being computed.
type sharedCache struct {
	store  *stepcache.Store
	warn   func(string)
	broken atomic.Bool // it cannot be used, which was reported

	mu       sync.Mutex
	inflight map[inflightKey]*inflight
}

// inflightKey identifies a result.
type inflightKey struct {
	scope stepcache.Scope
	key   stepcache.Key
}

// inflight is a result that is being computed while other rows wait for it. Before
// done is closed, either entry is set, or err, which all of them get, or neither:
// then each row is processed separately.
type inflight struct {
	done  chan struct{}
	entry []byte
	err   error
}

// cacheOf returns the cache of a folder.
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
		c = &sharedCache{store: stepcache.Open(folder, a.opts.Warn), warn: a.opts.Warn, inflight: map[inflightKey]*inflight{}}
		a.caches.open[folder] = c
	}
	return c
}

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

// warnOnce reports the first failure of the cache. The cache is an optimization,
// so the run continues without it.
func (c *sharedCache) warnOnce(err error) {
	if c.broken.CompareAndSwap(false, true) && c.warn != nil {
		c.warn(fmt.Sprintf("%v; continuing without the cache", err))
	}
}

// startOrWait registers the caller as the one that computes the result, or returns
// the computation in flight.
func (c *sharedCache) startOrWait(id inflightKey) (f *inflight, leads bool) {
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
func (c *sharedCache) complete(id inflightKey, f *inflight) {
	c.mu.Lock()
	delete(c.inflight, id)
	c.mu.Unlock()
	close(f.done)
}

// addCache puts a cache in front of a step that declares one. Batch steps have
// none, nor have steps that use a memory, themselves or in a flow: their results
// depend on earlier turns, and a cached answer would not be remembered (QT916).
func (a *App) addCache(n *node, l *layout) {
	base := n.plan.Step.Common()
	cfg := base.CacheConfig
	if n.step == nil || cfg == nil || n.plan.UsesMemory() {
		return
	}
	c := &cachedStep{
		step: n.step, count: n.count, cache: a.cacheOf(cmp.Or(cfg.Directory, spec.CacheDirectory)), errors: cfg.OnError == "Cache",
		scope:   stepcache.Scope{Namespace: cfg.Namespace, Step: base.ID, Version: cfg.Version},
		policy:  stepcache.Policy{Compress: cfg.Compress, MaxBytes: int64(cfg.MaxSizeMB) << 20},
		inputs:  newPorts(l, base.AllInputs()),
		outputs: newPorts(l, base.AllOutputs()),
	}
	if cfg.TTL != nil {
		c.policy.TTL = time.Duration(*cfg.TTL) * time.Second
	}
	if cfg.KeyedBy != "inputs" {
		c.fingerprint = a.cacheFingerprint(n.plan.Step)
	}
	n.step = c
}

// ports are variables that a cached step reads or writes.
type ports struct {
	names []string
	slots []int
}

func newPorts(l *layout, refs []*spec.Ref[*spec.Variable]) ports {
	var p ports
	for _, r := range refs {
		if slot := l.Slot(r.To); slot >= 0 {
			p.names, p.slots = append(p.names, r.To.ID), append(p.slots, slot)
		}
	}
	return p
}

// cacheFingerprint returns the fingerprint of a step. In addition to what the
// document declares, it has the server that a model is called at, or the mock that
// replaces the model, and the source of a tool that is a file.
func (a *App) cacheFingerprint(s spec.Step) []byte {
	parts := checkpoint.Fingerprint(s, checkpoint.FingerprintOptions{
		Ignore: []string{"batch_config", "on_error"},
		Extra: func(e spec.Entity) []string {
			if m, ok := e.(spec.ModelEntity); ok {
				info, err := a.modelInfo(m)
				if err != nil { // then no call of the model succeeds
					return nil
				}
				return []string{info.Provider, info.Name, info.Endpoint, info.StandsFor, fmt.Sprint(info.Mock)}
			}
			if t, ok := e.(spec.Tool); ok {
				return []string{a.toolFactory.Source(t)}
			}
			return nil
		},
	})
	sum := checkpoint.Sum(parts)
	return sum[:]
}
