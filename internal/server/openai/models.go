package openai

import (
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// modelBody is a model as clients see it.
type modelBody struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// modelIDs returns the ids of the models that the caller may use: conversational flows,
// and embedding models.
func modelIDs(app *host.Application, p access.Principal) []string {
	var ids []string
	for _, f := range app.Flows {
		if f.Message != nil && access.Allowed(f.Spec, p) {
			ids = append(ids, f.ID())
		}
	}
	return append(ids, embeddingModels(app, p)...)
}

// embeddingModels returns the ids of the embedding models that the caller may use.
func embeddingModels(app *host.Application, p access.Principal) []string {
	var ids []string
	for _, m := range app.App.Spec().Models {
		if e, ok := m.(*spec.EmbeddingModel); ok && mayEmbed(app, p, e) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// mayEmbed reports whether a caller may call one of the flows that use an embedding model,
// or no flow uses it.
func mayEmbed(app *host.Application, p access.Principal, e *spec.EmbeddingModel) bool {
	free := true
	for _, f := range app.App.Spec().Flows {
		for _, step := range f.Plan().Steps {
			if !slices.Contains(step.Models(), spec.ModelEntity(e)) {
				continue
			}
			if access.Allowed(f, p) {
				return true
			}
			free = false
		}
	}
	return free
}

func (a *api) describe(id string) modelBody { return modelBody{id, "model", a.created, "qtype"} }

// listModels answers GET /v1/models.
func (a *api) listModels(w http.ResponseWriter, r *http.Request) {
	list := []modelBody{}
	for _, id := range modelIDs(a.Current(), access.PrincipalOf(r.Context())) {
		list = append(list, a.describe(id))
	}
	_ = writeJSON(w, map[string]any{"object": "list", "data": list})
}

// getModel answers GET /v1/models/{model}.
func (a *api) getModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("model")
	ids := modelIDs(a.Current(), access.PrincipalOf(r.Context()))
	for _, known := range ids {
		if known == id {
			_ = writeJSON(w, a.describe(id))
			return
		}
	}
	a.Fail(w, r, problem.New(http.StatusNotFound, "model_not_found", "there is no model %q%s", id, diag.DidYouMean(id, ids)))
}
