package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/vectors"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

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
