package googleai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// VertexConfig is a model of Vertex AI. BaseURL is the address before /v1/projects.
type VertexConfig struct {
	Config
	Project  string // the Google Cloud project
	Location string // the region, or global
}

// vertexExample is a base URL for error messages.
const vertexExample = "https://us-central1-aiplatform.googleapis.com"

// Path returns the path of a publisher's model.
func (c VertexConfig) Path(publisher string) []string {
	name := c.Info.Name[strings.LastIndexByte(c.Info.Name, '/')+1:]
	return []string{"v1", "projects", c.Project, "locations", c.Location, "publishers", publisher, "models", segment(name)}
}

// NewVertex makes a Client of Gemini in Vertex AI. It calls nothing.
func NewVertex(c VertexConfig) (*Client, error) {
	s, err := wire.NewServer(c.Config, format(vertexExample))
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, api: vertexAPI, endpoint: s.Base.JoinPath(c.Path("google")...), header: http.Header{}}
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return &Client{p}, nil
}

// VertexEmbedder calls an embedding model of Vertex AI. It is safe for concurrent use.
type VertexEmbedder struct {
	server   *wire.Server
	endpoint string
}

// NewVertexEmbedder makes a VertexEmbedder. It calls nothing.
func NewVertexEmbedder(c VertexConfig) (*VertexEmbedder, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "list of predictions", Example: vertexExample, Params: modelparams.VertexPredict})
	if err != nil {
		return nil, err
	}
	return &VertexEmbedder{server: s, endpoint: s.Base.JoinPath(c.Path("google")...).String() + ":predict"}, nil
}

// Info describes the model.
func (e *VertexEmbedder) Info() model.Info { return e.server.Info }

// Batch returns what one request can carry: the models of Gemini accept one text, the
// others at most 20,000 tokens.
func (e *VertexEmbedder) Batch() model.Batch {
	if strings.HasPrefix(e.server.Info.Name, "gemini") {
		return model.Batch{Texts: 1}
	}
	return model.Batch{Texts: 100, Bytes: 32 << 10}
}

// instance is a text to embed.
type instance map[string]any

// Embed sends one request with all texts; model.WithBatches splits and retries.
func (e *VertexEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, model.Usage, error) {
	parameters := map[string]any{}
	if e.server.Info.Dimensions > 0 {
		parameters["outputDimensionality"] = e.server.Info.Dimensions
	}
	shared := instance{"task_type": "RETRIEVAL_DOCUMENT"}
	if model.IsForQueries(ctx) {
		shared["task_type"] = "RETRIEVAL_QUERY"
	}
	for name, raw := range e.server.Encoded {
		switch field := wire.Camel(name); field {
		case "taskType":
			shared["task_type"] = raw
		case "title":
			shared["title"] = raw
		default:
			parameters[field] = raw
		}
	}
	instances := make([]instance, len(texts))
	for i, text := range texts {
		instances[i] = instance{"content": text}
		for name, value := range shared {
			instances[i][name] = value
		}
	}
	var got predictions
	call := wire.Call{URL: e.endpoint, Header: http.Header{}, Body: map[string]any{"instances": instances, "parameters": parameters}}
	if e.server.Key != "" {
		call.Header.Set("Authorization", "Bearer "+e.server.Key)
	}
	err := e.server.Ask(ctx, call, func(raw []byte) error { return got.read(raw, len(texts)) })
	return got.vectors, got.usage, err
}

// predictions is an answer.
type predictions struct {
	vectors [][]float32
	usage   model.Usage
}

// read reads the response to that many texts.
func (p *predictions) read(raw []byte, texts int) error {
	var body struct {
		Predictions []struct {
			Embeddings struct {
				Values     []float32 `json:"values"`
				Statistics struct {
					Tokens float64 `json:"token_count"`
				} `json:"statistics"`
			} `json:"embeddings"`
		} `json:"predictions"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return wire.Shape(err)
	}
	if body.Predictions == nil {
		return errors.New("no predictions")
	}
	if len(body.Predictions) != texts {
		return fmt.Errorf("%d vectors for %d texts", len(body.Predictions), texts)
	}
	for _, one := range body.Predictions {
		p.vectors = append(p.vectors, one.Embeddings.Values)
		p.usage.Input += int(one.Embeddings.Statistics.Tokens)
	}
	return nil
}
