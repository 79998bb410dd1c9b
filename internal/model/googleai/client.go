// Package googleai is a client of Gemini: the Gemini API (generativelanguage.googleapis.com)
// and Vertex AI, with and without streaming.
package googleai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// apiVersion is the version of the protocol where the base URL does not end with one.
const apiVersion = "v1beta"

// The services, which are the API of the origin of messages: each refuses the signatures of
// the other.
const (
	geminiAPI = "gemini"
	vertexAPI = "vertex"
)

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /v1beta/models.
type Config = wire.Config

// Client calls one model of one server. It is safe for concurrent use.
type Client struct{ protocol *protocol }

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c, format("https://generativelanguage.googleapis.com"))
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, api: geminiAPI, endpoint: s.Base, header: http.Header{}}
	if !wire.IsVersion(path.Base(s.Base.Path)) {
		p.endpoint = p.endpoint.JoinPath(apiVersion)
	}
	p.endpoint = p.endpoint.JoinPath(modelPath(c.Info.Name)...)
	if c.Key != "" {
		p.header.Set("X-Goog-Api-Key", c.Key)
	}
	return &Client{p}, nil
}

// modelPath returns the path of a model as a list: models and tunedModels are the collections.
func modelPath(name string) []string {
	collection, rest, found := strings.Cut(name, "/")
	if !found || collection != "models" && collection != "tunedModels" {
		collection, rest = "models", name
	}
	return []string{collection, segment(rest)}
}

// segment escapes a name as one segment of a path, also where it is that of a parent.
func segment(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// format describes the wire format.
func format(example string) wire.Format {
	return wire.Format{Answers: "Gemini response", Example: example,
		Params: modelparams.Gemini, Turns: wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true}, Forbids: true}
}

// Info describes the model.
func (c *Client) Info() model.Info { return c.protocol.Info }

// protocol is Gemini's generateContent, for one call of the model.
type protocol struct {
	*wire.Server
	api      string
	endpoint *url.URL    // URL of the model, without the method
	header   http.Header // the credential

	unsigned bool       // Google refused the signatures: the request has none
	answer   *assembler // reads the answer
}

// Request encodes a request. It continues an answer that is not complete.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	if err != nil {
		return wire.Call{}, err
	}
	if p.answer != nil && p.answer.token != "" {
		body["continuationToken"] = p.answer.token
		p.answer.next()
	} else {
		p.answer = &assembler{}
	}
	return wire.Call{URL: p.address(req.Stream), Header: p.header, Body: body, Answer: p.answer}, nil
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return p.answer }

// address returns the URL of a request.
func (p *protocol) address(stream bool) string {
	if stream {
		return p.methodURL("streamGenerateContent") + "?alt=sse"
	}
	return p.methodURL("generateContent")
}

// methodURL returns the URL of a method, which is part of the path.
func (p *protocol) methodURL(method string) string {
	to := *p.endpoint
	to.Path += ":" + method
	if to.RawPath != "" {
		to.RawPath += ":" + method
	}
	return to.String()
}

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
