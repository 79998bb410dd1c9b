// Package openai is the adapter for OpenAI's API: chat completions, responses, models and
// embeddings. Conversational flows and embedding models are its models, by their ids.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
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
