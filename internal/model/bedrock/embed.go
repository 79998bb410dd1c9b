package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Embedder calls one embedding model of Amazon (Titan and Nova) or Cohere. It is safe for
// concurrent use.
type Embedder struct {
	server *wire.Server
	family family
}

// request is what a request is made of.
type request struct {
	info  model.Info
	texts []string
	query bool // the texts are queries of a search, not documents
}

// family is the format of requests and responses of the embedding models of one vendor.
type family struct {
	texts    int // maximum number of texts in one request
	params   modelparams.Protocol
	request  func(r request, fields map[string]any)
	response func(raw []byte) (vectors [][]float32, tokens int, err error)
	nested   string // the field that has the parameters; empty for the request itself
}

// set adds a parameter to a request.
func (f family) set(fields map[string]any, name string, value json.RawMessage) {
	if nested, ok := fields[f.nested].(map[string]any); ok {
		nested[wire.Camel(name)] = value
		return
	}
	fields[name] = value
}

// NewEmbedder makes an Embedder. It calls nothing.
func NewEmbedder(c Config) (*Embedder, error) {
	f := family{texts: 1, params: modelparams.Titan, request: titanRequest, response: titanResponse}
	switch protocol := protocolOf(c.Info); protocol {
	case "titan":
	case "nova":
		f.request, f.response, f.nested = novaRequest, novaResponse, novaParams
	case "cohere", "cohere-v4":
		f = family{texts: 96, params: modelparams.CohereEmbed, request: cohereRequest, response: cohereResponse}
	default:
		return nil, fmt.Errorf("model %s: %s is not an embedding model of Bedrock that is supported", c.Info.ID, c.Info.Name)
	}
	s, err := wire.NewServer(c, wire.Format{Answers: "embedding", Example: example, Params: f.params})
	if err != nil {
		return nil, err
	}
	return &Embedder{server: s, family: f}, nil
}

// protocolOf returns the form of requests to an embedding model, empty if it is unknown.
func protocolOf(info model.Info) string {
	if info.Known == nil {
		return ""
	}
	return info.Known.EmbeddingProtocol
}

// Info describes the model.
func (e *Embedder) Info() model.Info { return e.server.Info }

// Batch returns what one request can carry.
func (e *Embedder) Batch() model.Batch { return model.Batch{Texts: e.family.texts} }

// Embed sends one request with all texts; model.WithBatches splits and retries.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	fields := map[string]any{}
	e.family.request(request{info: e.server.Info, texts: texts, query: model.IsForQueries(ctx)}, fields)
	for name, raw := range e.server.Encoded {
		e.family.set(fields, name, raw)
	}
	var vectors [][]float32
	var used model.Usage
	counted := 0
	call := wire.Call{URL: address(e.server, "invoke"), Header: header(e.server.Key), Body: fields,
		Received: func(h http.Header) { counted, _ = strconv.Atoi(h.Get("X-Amzn-Bedrock-Input-Token-Count")) }}
	call.Header.Set("Accept", "application/json")
	err := e.server.Ask(ctx, call, func(raw []byte) (err error) {
		vectors, used.Input, err = e.family.response(raw)
		if err == nil && len(vectors) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
		}
		return err
	})
	used.Input = max(used.Input, counted)
	return vectors, used, err
}

// titanRequest encodes a request of Titan. Its first version has no choice of dimensions.
func titanRequest(r request, fields map[string]any) {
	fields["inputText"] = r.texts[0]
	if r.info.Dimensions > 0 && r.info.Known.DimensionsSet == catalogue.Yes {
		fields["dimensions"] = r.info.Dimensions
	}
}

func titanResponse(raw []byte) ([][]float32, int, error) {
	var r struct {
		Vector []float32  `json:"embedding"`
		Tokens wire.Count `json:"inputTextTokenCount"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, 0, wire.Shape(err)
	}
	if r.Vector == nil {
		return nil, 0, errors.New("no embedding")
	}
	return [][]float32{r.Vector}, int(r.Tokens), nil
}

// novaParams is the field of Nova's requests that has their parameters.
const novaParams = "singleEmbeddingParams"

// novaRequest encodes a request of Nova. An embedding_purpose in inference_params replaces that
// of the request.
func novaRequest(r request, fields map[string]any) {
	purpose := "GENERIC_INDEX"
	if r.query {
		purpose = "TEXT_RETRIEVAL"
	}
	params := map[string]any{"embeddingPurpose": purpose, "text": map[string]string{"truncationMode": "NONE", "value": r.texts[0]}}
	if r.info.Dimensions > 0 {
		params["embeddingDimension"] = r.info.Dimensions
	}
	fields["taskType"], fields[novaParams] = "SINGLE_EMBEDDING", params
}

func novaResponse(raw []byte) ([][]float32, int, error) {
	var r struct {
		Embeddings []struct {
			Vector []float32 `json:"embedding"`
		} `json:"embeddings"`
		Tokens wire.Count `json:"inputTextTokenCount"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, 0, wire.Shape(err)
	}
	if len(r.Embeddings) == 0 {
		return nil, 0, errors.New("no embedding")
	}
	return [][]float32{r.Embeddings[0].Vector}, int(r.Tokens), nil
}

// cohereRequest encodes a request of Cohere. An input_type in inference_params replaces that
// of the request.
func cohereRequest(r request, fields map[string]any) {
	fields["texts"], fields["input_type"] = r.texts, "search_document"
	if r.query {
		fields["input_type"] = "search_query"
	}
	if protocolOf(r.info) == "cohere-v4" {
		fields["embedding_types"] = []string{"float"}
		if r.info.Dimensions > 0 {
			fields["output_dimension"] = r.info.Dimensions
		}
	}
}

func cohereResponse(raw []byte) ([][]float32, int, error) {
	var r struct {
		Embeddings json.RawMessage `json:"embeddings"` // vectors, or vectors by the type of their numbers
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, 0, wire.Shape(err)
	}
	var byType struct {
		Float [][]float32 `json:"float"`
	}
	if json.Unmarshal(r.Embeddings, &byType) == nil && byType.Float != nil {
		return byType.Float, 0, nil
	}
	var vectors [][]float32
	if json.Unmarshal(r.Embeddings, &vectors) != nil || vectors == nil {
		return nil, 0, errors.New("no embeddings of numbers")
	}
	return vectors, 0, nil
}
