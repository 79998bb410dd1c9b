package runtime

import (
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// registerModel adds a declared model. An embedding model is also known as a chat
// model, as the language allows to refer to it as one.
func (a *App) registerModel(m spec.ModelEntity) {
	if e, ok := m.(*spec.EmbeddingModel); ok {
		a.models.embedders.add(e.Base(), func() (model.Embedder, error) { return a.newEmbedder(e) }, model.EmbedWithFallbacks, model.PatientEmbedder)
	}
	base := m.Base()
	a.models.chat.add(base, func() (model.Chat, error) { return a.newChat(base) }, model.WithFallbacks, model.Patient)
}

func (a *App) newChat(m *spec.Model) (model.Chat, error) {
	if a.opts.Mocks.Model != nil {
		if mock, err := a.opts.Mocks.Model(m); mock != nil || err != nil {
			if mock == nil {
				return nil, err
			}
			return a.redactChat(provider.WithAnswers(m, observeChat(mock, m), a.providerOptions(m))), err
		}
	}
	made, err := provider.New(m, a.providerOptions(m))
	if wrap := a.opts.Mocks.WrapModel; wrap != nil && err == nil {
		made, err = wrap(m, made)
	}
	return a.redactChat(made), withPosition(m, err)
}

func (a *App) newEmbedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	if a.opts.Mocks.Embedder != nil {
		if mock, err := a.opts.Mocks.Embedder(m); mock != nil || err != nil {
			return observeEmbedder(mock, &m.Model), err
		}
	}
	made, err := provider.NewEmbedder(m, a.providerOptions(&m.Model))
	if wrap := a.opts.Mocks.WrapEmbedder; wrap != nil && err == nil {
		made, err = wrap(m, made)
	}
	if err != nil {
		return made, withPosition(m, err)
	}
	return a.cacheVectors(m, made), nil
}

// HasBatches reports whether calls of a model can be made in batches of its provider.
func (a *App) HasBatches(m spec.ModelEntity) bool { return provider.HasBatches(m, a.opts.Parts.Models) }

func (a *App) providerOptions(m *spec.Model) provider.Options {
	return provider.Options{
		Getenv: a.opts.Getenv, Key: a.opts.DocumentEnv, HTTP: a.opts.HTTP, Calls: connections(a.spec), Secret: a.secret, Policy: a.opts.Policy, Clients: a.opts.Parts.Models, Warn: a.opts.Warn, Forms: &a.models.forms, Traffic: &a.models.traffic, Flex: a.opts.Flex, Batches: a.opts.Parts.inBatches,
		Wrap:         func(c model.Chat) model.Chat { return observeChat(c, m) },
		WrapEmbedder: func(e model.Embedder) model.Embedder { return observeEmbedder(e, m) },
	}
}

// add adds a model that build makes; join joins it with its fallbacks, and patient lets the whole wait for its servers.
func (p pool[M]) add(m *spec.Model, build func() (M, error), join func(M, ...M) M, patient func(M) M) {
	p.single[m] = sync.OnceValues(build)
	p.whole[m] = sync.OnceValues(func() (M, error) {
		first, others, err := p.withFallbacks(m)
		if err != nil {
			return first, err
		}
		return patient(join(first, others...)), nil
	})
}

// withFallbacks makes a model and its fallbacks.
func (p pool[M]) withFallbacks(m *spec.Model) (first M, others []M, err error) {
	if first, err = p.single[m](); err != nil {
		return first, nil, err
	}
	for _, f := range fallbacks(m)[1:] {
		made, ok := p.single[f]
		if !ok {
			return first, nil, fmt.Errorf("model %s: its fallback %s is not part of the application", m.ID, f.ID)
		}
		other, err := made()
		if err != nil {
			return first, nil, fmt.Errorf("%smodel %s: its fallback cannot be made: %w", positionPrefix(m), m.ID, err)
		}
		others = append(others, other)
	}
	return first, others, nil
}

// fallbacks returns a model, its fallbacks, then theirs, each once.
func fallbacks(m *spec.Model) []*spec.Model {
	all := []*spec.Model{m}
	for i := 0; i < len(all); i++ {
		for _, f := range all[i].Fallbacks {
			if f.To != nil && !slices.Contains(all, f.To.Base()) {
				all = append(all, f.To.Base())
			}
		}
	}
	return all
}

// get returns the shared object of a model.
func (p pool[M]) get(m *spec.Model) (M, error) {
	made, ok := p.whole[m]
	if !ok {
		var none M
		return none, fmt.Errorf("model %s is not part of the application", m.ID)
	}
	return made()
}

// find returns the shared object of the model with an id.
func (p pool[M]) find(kind, id string) (M, error) {
	for m, made := range p.whole {
		if m.ID == id {
			return made()
		}
	}
	var none M
	return none, fmt.Errorf("no %s has the id %q", kind, id)
}

// Model returns the shared chat model with an id.
func (a *App) Model(id string) (model.Chat, error) { return a.models.chat.find("model", id) }

// Embedder returns the shared embedding model with an id.
func (a *App) Embedder(id string) (model.Embedder, error) {
	return a.models.embedders.find("embedding model", id)
}

// embedder returns the shared object of an embedding model.
func (a *App) embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	return a.models.embedders.get(m.Base())
}

// CircuitBreakers returns the circuit breakers of servers of models that have opened since
// the App was made.
func (a *App) CircuitBreakers() []model.BreakerState { return a.models.traffic.Breakers() }
