package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// openIndexTimeout limits how long opening an index may take, which may call a server.
const openIndexTimeout = 30 * time.Second

// Index returns the shared index with an id.
func (a *App) Index(id string) (index.Index, error) {
	for _, x := range a.Indexes() {
		if x.EntityID() == id {
			return a.index(x)
		}
	}
	return nil, fmt.Errorf("no index has the id %q", id)
}

// Indexes returns the indexes of the application and of the documents that it references.
func (a *App) Indexes() []spec.Index {
	var all []spec.Index
	for _, doc := range a.spec.Documents() {
		if doc.Application == nil {
			continue
		}
		all = append(all, doc.Application.Indexes...)
	}
	return all
}

// index returns the shared object of an index.
func (a *App) index(x spec.Index) (index.Index, error) {
	a.indexes.mu.Lock()
	defer a.indexes.mu.Unlock()
	if opened, ok := a.indexes.open[x.EntityID()]; ok {
		return opened, nil
	}
	opened, err := a.openIndex(x)
	if err != nil {
		return nil, err
	}
	if a.indexes.open == nil {
		a.indexes.open = map[string]index.Index{}
	}
	a.indexes.open[x.EntityID()] = opened
	return opened, nil
}

func (a *App) openIndex(x spec.Index) (index.Index, error) {
	if a.opts.Mocks.Index != nil {
		if mock, err := a.opts.Mocks.Index(x); mock != nil || err != nil {
			return mock, err
		}
	}
	ctx, cancel := context.WithTimeout(a.background(), openIndexTimeout)
	defer cancel()
	opened, err := store.Open(ctx, x, store.Options{Getenv: a.Getenv, HTTP: a.opts.HTTP, Secret: a.secret, Policy: a.opts.Policy, Stores: a.opts.Parts.Indexes})
	if err != nil {
		return nil, fmt.Errorf("%s%w", positionPrefix(x), err)
	}
	if a.opts.Warn == nil {
		return opened, nil
	}
	return &emptyWarning{Index: opened, id: x.EntityID(), warn: a.opts.Warn}, nil
}

// emptyWarning warns once if a search finds nothing because the index has no entries: the flow that
// fills it did not run, or ran in another folder.
type emptyWarning struct {
	index.Index
	id      string
	warn    func(string)
	checked atomic.Bool
}

// Search returns the best matches.
func (x *emptyWarning) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	matches, err := x.Index.Search(ctx, q)
	if err == nil && len(matches) == 0 && x.checked.CompareAndSwap(false, true) {
		if stats, err := x.Stats(ctx); err == nil && stats.Entries == 0 {
			x.warn(fmt.Sprintf("the index %s has no entries: run the flow that fills it", x.id))
		}
	}
	return matches, err
}

// Check checks a query before its vector is known.
func (x *emptyWarning) Check(ctx context.Context, q index.Query) error {
	return index.Check(ctx, x.Index, q)
}

func (a *App) closeIndexes() error {
	a.indexes.mu.Lock()
	defer a.indexes.mu.Unlock()
	var errs []error
	for _, x := range a.indexes.open {
		errs = append(errs, x.Close())
	}
	clear(a.indexes.open)
	return errors.Join(errs...)
}

// ranker returns the shared ranker of a step, which build makes.
func (a *App) ranker(s spec.Step, build func(rerank.Options) (rerank.Ranker, error)) (rerank.Ranker, error) {
	a.rankers.mu.Lock()
	defer a.rankers.mu.Unlock()
	if made, ok := a.rankers.made[s]; ok {
		return made, nil
	}
	if a.rankers.made == nil {
		a.rankers.made = map[spec.Step]rerank.Ranker{}
		if a.rankers.http = a.serviceHTTP(); a.rankers.http == nil {
			a.rankers.http = rerank.NewClient()
		}
	}
	made, err := build(rerank.Options{Getenv: a.opts.Getenv, Key: a.opts.DocumentEnv, HTTP: a.rankers.http, Secret: a.secret, Policy: a.opts.Policy, AWS: a.opts.Parts.AWS,
		Model:    func(m *spec.Model) (model.Chat, error) { return a.models.chat.get(m) },
		Embedder: a.embedder})
	if err != nil {
		return nil, err
	}
	a.rankers.made[s] = made
	return made, nil
}

// close closes idle connections that the application has made.
func (r *rankers) close(own bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if own && r.http != nil {
		r.http.CloseIdleConnections()
	}
}
