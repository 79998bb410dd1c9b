package runtime

import (
	"fmt"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

// registerEmbedder makes an embedding model's shared object when it is first asked
// for, by itself and with its fallbacks.
func (a *App) registerEmbedder(m *spec.EmbeddingModel) {
	a.aloneEmbedders[m.Base()] = sync.OnceValues(func() (model.Embedder, error) {
		if a.opts.Doubles.Embedder != nil {
			if double, err := a.opts.Doubles.Embedder(m); double != nil || err != nil {
				return double, err
			}
		}
		made, err := provider.NewEmbedder(m, provider.Options{Getenv: a.opts.Getenv, HTTP: a.opts.HTTP, Secret: a.secret})
		return made, withPosition(m, err)
	})
	a.embedders[m] = sync.OnceValues(func() (model.Embedder, error) {
		first, others, err := withFallbacks(m.Base(), a.aloneEmbedders)
		if err != nil {
			return nil, err
		}
		return model.EmbedWithFallbacks(first, others...), nil
	})
}

// embedder is the shared object of an embedding model, for the steps and the
// memories that name it.
func (a *App) embedder(m *spec.EmbeddingModel) (model.Embedder, error) {
	made, ok := a.embedders[m]
	if !ok {
		return nil, fmt.Errorf("model %s is not part of the application", m.ID)
	}
	return made()
}

// Embedder is the shared embedding model of that id.
func (a *App) Embedder(id string) (model.Embedder, error) {
	for m, made := range a.embedders {
		if m.ID == id {
			return made()
		}
	}
	return nil, fmt.Errorf("no embedding model has the id %q", id)
}

// modelInfo tells what a model is that a step asks, making it where no run did yet.
func (a *App) modelInfo(m spec.ModelEntity) (model.Info, error) {
	if e, ok := m.(*spec.EmbeddingModel); ok {
		made, err := a.embedder(e)
		if err != nil {
			return model.Info{}, err
		}
		return made.Info(), nil
	}
	made, err := a.models[m.Base()]()
	if err != nil {
		return model.Info{}, err
	}
	return made.Info(), nil
}

// embedderOf is the embedding model that a step asks; nil where there is none.
func embedderOf(s spec.Step) *spec.EmbeddingModel {
	if s, ok := s.(*spec.InvokeEmbedding); ok {
		return s.Model.To
	}
	return nil
}
