package openai

import (
	"net/http"

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
	return append(ids, embeddingModels(app)...)
}

// embeddingModels returns the ids of the embedding models.
func embeddingModels(app *host.Application) []string {
	var ids []string
	for _, m := range app.App.Spec().Models {
		if e, ok := m.(*spec.EmbeddingModel); ok {
			ids = append(ids, e.ID)
		}
	}
	return ids
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
