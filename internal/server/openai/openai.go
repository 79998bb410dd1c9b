// Package openai is the adapter for OpenAI's API: chat completions, responses, models and
// embeddings. Conversational flows and embedding models are its models, by their ids.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// ignoredHeader names the parameters of a request that have no effect.
const ignoredHeader = "X-Ignored-Parameters"

// api answers the requests of one server. It is safe for concurrent use.
type api struct {
	*host.Host
	created int64 // of the models: when the server started
}

// Mount adds the resources below /v1 to mux.
func Mount(mux *http.ServeMux, h *host.Host) {
	a := &api{Host: h, created: time.Now().Unix()}
	mux.HandleFunc("POST /v1/chat/completions", a.handle(a.chatCompletions))
	mux.HandleFunc("POST /v1/responses", a.handle(a.responses))
	mux.HandleFunc("POST /v1/embeddings", a.handle(a.embeddings))
	mux.HandleFunc("GET /v1/models", a.listModels)
	mux.HandleFunc("GET /v1/models/{model}", a.getModel)
}

// request is a request with a JSON object as its body.
type request struct {
	*http.Request
	app       *host.Application
	principal access.Principal
	body      []byte
	params    params
}

// handle returns the handler of a resource: it reads the body, and writes errors.
func (a *api) handle(serve func(http.ResponseWriter, *request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, err := a.read(w, r)
		if err == nil {
			err = serve(w, req)
		}
		if err != nil {
			a.Fail(w, r, err)
		}
	}
}

// read reads the body of a request. The error is a *problem.Problem.
func (a *api) read(w http.ResponseWriter, r *http.Request) (*request, error) {
	if err := host.RequireJSON(r); err != nil {
		return nil, err
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	req := &request{Request: r, app: a.Current(), principal: access.PrincipalOf(r.Context()), body: body}
	req.params, err = parseParams(body)
	return req, err
}

// parseParams parses the body of a request. The error is a *problem.Problem.
func parseParams(body []byte) (params, error) {
	if _, err := schema.ParseBody(body); err != nil {
		return nil, err
	}
	var p params
	if err := json.Unmarshal(body, &p); err != nil || p == nil {
		return nil, problem.New(http.StatusBadRequest, "invalid_request", "the body must be a JSON object")
	}
	return p, nil
}

// flow returns the conversational flow that the parameter model names.
func (a *api) flow(r *request) (*schema.Flow, error) {
	var id string
	if err := r.params.decode("model", &id); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, bad("/model", "missing_required_parameter", "the parameter is missing: expected the id of a flow")
	}
	flow, err := r.app.Flow(r.principal, id)
	if err != nil {
		return nil, atModel(err)
	}
	if flow.Message == nil {
		return nil, atModel(problem.New(http.StatusNotFound, "unknown_flow", "flow %s is not conversational; call it at /flows/%s", id, id))
	}
	return flow, nil
}

// atModel adds that the parameter model is wrong.
func atModel(err error) error {
	p := problem.Of(err)
	if p == nil {
		return err
	}
	with := *p
	with.Errors = []problem.Field{{Pointer: "/model", Detail: p.Detail}}
	return &with
}

// bad returns the problem of a wrong parameter.
func bad(pointer, code, format string, args ...any) *problem.Problem {
	p := problem.New(http.StatusBadRequest, code, format, args...)
	p.Errors = []problem.Field{{Pointer: pointer, Detail: p.Detail}}
	p.Detail = pointer + ": " + p.Detail
	return p
}

// writeJSON writes a response.
func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // fails only if the client is gone
	return nil
}

// fetcher returns what fetches files for a request.
func (a *api) fetcher(ctx context.Context) fetchFunc {
	return func(url string) ([]byte, string, error) { return a.Fetch(ctx, url) }
}

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

// maxTexts is the largest number of texts of a request, as in OpenAI's API.
const maxTexts = 2048

// embedding is the vector of a text.
type embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"` // numbers, or base64 of them
}

// embeddings answers POST /v1/embeddings.
func (a *api) embeddings(w http.ResponseWriter, r *request) error {
	ignored, err := r.params.check(nil, "model", "input", "encoding_format", "dimensions")
	if err != nil {
		return err
	}
	m, err := r.embedder()
	if err != nil {
		return err
	}
	texts, err := r.params.texts()
	if err != nil {
		return err
	}
	encode, err := r.params.encoding(m.Info())
	if err != nil {
		return err
	}
	vectors, usage, err := m.Embed(r.Context(), texts)
	if err != nil {
		return embeddingProblem(err)
	}
	data := make([]embedding, len(vectors))
	for i, v := range vectors {
		data[i] = embedding{"embedding", i, encode(v)}
	}
	reportIgnored(w, ignored)
	return writeJSON(w, map[string]any{"object": "list", "model": m.Info().ID, "data": data,
		"usage": map[string]int{"prompt_tokens": usage.Input, "total_tokens": usage.Input}})
}

// embedder returns the embedding model that the parameter model names.
func (r *request) embedder() (model.Embedder, error) {
	var id string
	if err := r.params.decode("model", &id); err != nil {
		return nil, err
	}
	ids := embeddingModels(r.app, r.principal)
	switch {
	case id == "":
		return nil, bad("/model", "missing_required_parameter", "the parameter is missing: expected the id of an embedding model")
	case !slices.Contains(ids, id):
		return nil, atModel(problem.New(http.StatusNotFound, "model_not_found", "there is no embedding model %q%s", id, diag.DidYouMean(id, ids)))
	}
	return r.app.App.Embedder(id)
}

// texts returns the texts of the parameter input.
func (p params) texts() ([]string, error) {
	if !p.has("input") {
		return nil, bad("/input", "missing_required_parameter", "the parameter is missing: expected a string or an array of strings")
	}
	var one string
	texts := []string{}
	if json.Unmarshal(p["input"], &one) == nil {
		texts = append(texts, one)
	} else if json.Unmarshal(p["input"], &texts) != nil {
		return nil, bad("/input", "invalid_type", "expected a string or an array of strings; tokens are not supported")
	}
	switch {
	case len(texts) == 0:
		return nil, bad("/input", "invalid_value", "there is no text")
	case len(texts) > maxTexts:
		return nil, bad("/input", "too_many_texts", "there are %d texts; at most %d are allowed", len(texts), maxTexts)
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			return nil, bad(pointerTo("/input", i), "invalid_value", "the text is empty")
		}
	}
	return texts, nil
}

// encoding returns what converts vectors to the form that the client wants.
func (p params) encoding(info model.Info) (func([]float32) any, error) {
	dimensions, format := info.Dimensions, "float"
	if err := p.decode("dimensions", &dimensions); err != nil {
		return nil, err
	}
	if dimensions != info.Dimensions {
		return nil, bad("/dimensions", "unsupported_value", "the vectors of %s have %d dimensions", info.ID, info.Dimensions)
	}
	if err := p.decode("encoding_format", &format); err != nil {
		return nil, err
	}
	switch format {
	case "float":
		return func(v []float32) any { return v }, nil
	case "base64":
		return func(v []float32) any { return vectors.Base64(v) }, nil
	}
	return nil, bad("/encoding_format", "invalid_value", "unknown format %q: expected float or base64", format)
}

// embeddingProblem returns the problem of a failed call.
func embeddingProblem(err error) error {
	if _, ok := errors.AsType[*model.Error](err); !ok {
		return err
	}
	text, _ := runtime.PublicText(err)
	return failedCall(runtime.CodeModel, err, text)
}
