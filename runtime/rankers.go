package runtime

import (
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

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
	made, err := build(rerank.Options{Getenv: a.opts.Getenv, Key: a.opts.DocumentEnv, HTTP: a.rankers.http, Secret: a.secret, Policy: a.opts.Policy,
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
