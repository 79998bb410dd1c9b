package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// stepCache returns the cache of a step: the cache in the shared store, if there is one and the step names no
// directory. It is nil if the document may not write there.
func (a *App) stepCache(cfg *spec.CacheConfig) *stepcache.Cache {
	shared := a.SharedCache()
	if cfg.Directory != "" || shared == nil {
		return a.cacheOf(cmp.Or(cfg.Directory, spec.CacheDirectory))
	}
	a.caches.mu.Lock()
	defer a.caches.mu.Unlock()
	if a.caches.shared == nil {
		a.caches.shared = stepcache.NewSharedCache(shared, a.opts.Warn)
	}
	return a.caches.shared
}

// SharedCache returns the cached results of steps in the store that all processes with the application share; nil if
// its store is not one of several machines, or the document is untrusted: it could name the id and the steps of another application.
func (a *App) SharedCache() *stepcache.Shared {
	state := a.State()
	if !store.IsServer(state.Store) || a.opts.Policy.Restricted() {
		return nil
	}
	return stepcache.NewShared(state)
}

// cacheOf returns the cache of a folder, nil if the document may not write there.
func (a *App) cacheOf(folder string) *stepcache.Cache {
	isDefault := folder == spec.CacheDirectory
	folder = a.opts.Policy.Output(folder)
	err := a.opts.Policy.Write(folder)
	if isDefault && !trust.IsWithin(filepath.Dir(folder), folder) {
		err = fmt.Errorf("%s is a symbolic link to another folder; name that with directory", folder)
	}
	if err != nil {
		if a.opts.Warn != nil {
			a.opts.Warn("nothing is cached: " + err.Error())
		}
		return nil
	}
	if whole, err := filepath.Abs(folder); err == nil {
		folder = whole
	}
	a.caches.mu.Lock()
	defer a.caches.mu.Unlock()
	if a.caches.open == nil {
		a.caches.open = map[string]*stepcache.Cache{}
	}
	c, ok := a.caches.open[folder]
	if !ok {
		c = stepcache.NewCache(folder, a.opts.Warn)
		a.caches.open[folder] = c
	}
	return c
}

func (a *App) closeCaches() error {
	a.caches.mu.Lock()
	defer a.caches.mu.Unlock()
	var errs []error
	for _, c := range a.caches.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// addCache puts a cache in front of a step that declares one. Batch steps have
// none, nor have steps that use a memory, themselves or in a flow: their results
// depend on earlier turns, and a cached answer would not be remembered (QT916).
func (a *App) addCache(n *node, l *layout) {
	base := n.plan.Step.Common()
	cfg := base.CacheConfig
	if n.step == nil || cfg == nil || n.plan.UsesMemory() || a.opts.Mocks.NoStepCache {
		return
	}
	cache := a.stepCache(cfg)
	if cache == nil {
		return
	}
	c := stepcache.StepConfig{
		Cache: cache, Failures: cfg.OnError == "Cache", Code: ErrorCode,
		Scope:   stepcache.Scope{Namespace: cfg.Namespace, Step: base.ID, Version: cfg.Version},
		Policy:  stepcache.Policy{Compress: cfg.Compress, MaxBytes: int64(cfg.MaxSizeMB) << 20},
		Inputs:  newPorts(l, base.AllInputs()),
		Outputs: newPorts(l, base.AllOutputs()),
		Hits:    &n.count.hits,
		Misses:  &n.count.misses,
	}
	if scope := memory.Scope(cfg.Scope); scope != memory.AppScope {
		c.Sharer = scope.Session
	}
	if cfg.TTL != nil {
		c.Policy.TTL = time.Duration(*cfg.TTL) * time.Second
	}
	if cfg.KeyedBy != "inputs" {
		c.Fingerprint = a.cacheFingerprint(n.plan.Step)
	}
	n.step = stepcache.NewStep(&observedStep{node: n, step: n.step}, c)
	n.cached = true
}

// cacheVectors puts a cache in front of an embedding model, unless it is a mock, which is
// as fast as the cache.
func (a *App) cacheVectors(m *spec.EmbeddingModel, made model.Embedder) model.Embedder {
	cfg := m.VectorCache
	if cfg == nil {
		cfg = &spec.VectorCache{Enabled: true, MaxSizeMB: spec.VectorCacheSizeMB}
	}
	if !a.opts.Cache || !cfg.Enabled || made.Info().Mock {
		return made
	}
	params, err := json.Marshal(m.InferenceParams) // sorts the keys
	if err != nil {
		return made // values that JSON does not have cannot be sent either
	}
	folder := a.cacheOf(cmp.Or(cfg.Directory, spec.CacheDirectory))
	if folder == nil {
		return made
	}
	return stepcache.NewEmbedder(made, folder, params, int64(cfg.MaxSizeMB)<<20)
}

// uncached is an embedding model without its cache. Memories use it: they store the vectors
// of conversations themselves, maybe encrypted.
type uncached struct{ model.Embedder }

// Embed calls the model.
func (m uncached) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	return m.Embedder.Embed(stepcache.WithoutVectors(ctx), texts)
}

func newPorts(l *layout, refs []*spec.Ref[*spec.Variable]) stepcache.Ports {
	var p stepcache.Ports
	for _, r := range refs {
		if slot := l.Slot(r.To); slot >= 0 {
			p.Names, p.Slots = append(p.Names, r.To.ID), append(p.Slots, slot)
		}
	}
	return p
}

// cacheFingerprint returns the fingerprint of a step. In addition to the declarations, it
// has the server of a model, or the mock that replaces it, and the file of a tool.
func (a *App) cacheFingerprint(s spec.Step) []byte {
	parts := checkpoint.Fingerprint(s, checkpoint.FingerprintOptions{
		IgnoreRoot: []string{"batch_config", "on_error"}, // of a step in a flow that it runs, they decide the result
		Extra: func(e spec.Entity) []string {
			if m, ok := e.(spec.ModelEntity); ok {
				info, err := a.modelInfo(m)
				if err != nil { // then no call of the model succeeds
					return nil
				}
				return []string{info.Provider, info.Name, info.Endpoint, info.Replaces, fmt.Sprint(info.Mock)}
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

// modelInfo describes a model, and makes it if no run has.
func (a *App) modelInfo(m spec.ModelEntity) (model.Info, error) {
	if _, embeds := a.models.embedders.whole[m.Base()]; embeds {
		made, err := a.models.embedders.get(m.Base())
		if err != nil {
			return model.Info{}, err
		}
		return made.Info(), nil
	}
	made, err := a.models.chat.get(m.Base())
	if err != nil {
		return model.Info{}, err
	}
	return made.Info(), nil
}

// Models returns the models that a flow uses, itself or in flows that it runs, in
// the order of the steps, each once.
func (a *App) Models(flowID string) ([]model.Info, error) {
	f, err := a.Flow(flowID)
	if err != nil {
		return nil, err
	}
	var infos []model.Info
	seen := map[spec.ModelEntity]bool{}
	for s := range f.Plan().All() {
		for _, m := range s.Models() {
			if seen[m] {
				continue
			}
			seen[m] = true
			info, err := a.modelInfo(m)
			if missing := new(provider.CredentialsError); errors.As(err, &missing) && isOfIndex(s, m) {
				continue // a search for words calls no model; others report it
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// isOfIndex reports whether only indexes call the model for the step.
func isOfIndex(s *spec.StepPlan, m spec.ModelEntity) bool {
	calls := func(uses []spec.Use) bool {
		return slices.Contains(spec.Linked[spec.ModelEntity](uses, spec.RoleChatModel, spec.RoleEmbedding), m)
	}
	return !calls(s.Uses) && !slices.ContainsFunc(s.Callers(), func(n spec.Node) bool {
		_, index := n.(spec.Index)
		return !index && calls(spec.UsesOf(n))
	})
}
