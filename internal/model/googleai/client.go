// Package googleai is a client of Gemini: the Gemini API (generativelanguage.googleapis.com)
// and Vertex AI, with and without streaming.
package googleai

import (
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
