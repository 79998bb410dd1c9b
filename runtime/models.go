package runtime

import (
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

// registerModel makes a chat model's shared object when it is first asked for: the
// model by itself, which its own steps and those that fall back on it share
// with its rate limit, and the model with its fallbacks.
func (a *App) registerModel(m *spec.Model) {
	a.alone[m] = sync.OnceValues(func() (model.Chat, error) {
		if a.opts.Doubles.Model != nil {
			if double, err := a.opts.Doubles.Model(m); double != nil || err != nil {
				return double, err
			}
		}
		made, err := provider.New(m, provider.Options{Getenv: a.opts.Getenv, HTTP: a.opts.HTTP, Secret: a.secret})
		return made, withPosition(m, err)
	})
	a.models[m] = sync.OnceValues(func() (model.Chat, error) {
		first, others, err := withFallbacks(m, a.alone)
		if err != nil {
			return nil, err
		}
		return model.WithFallbacks(first, others...), nil
	})
}

// withFallbacks makes a model and those that are asked in its place.
func withFallbacks[M any](m *spec.Model, alone map[*spec.Model]func() (M, error)) (first M, others []M, err error) {
	if first, err = alone[m](); err != nil {
		return first, nil, err
	}
	for _, f := range fallbacks(m)[1:] {
		made, ok := alone[f]
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

// fallbacks are a model and those that are asked in its place, in their order:
// its fallbacks, then theirs, each once.
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
