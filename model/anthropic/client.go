// Package anthropic is a client of Anthropic's Messages API, with and without streaming.
package anthropic

import (
	"net/http"
	"path"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// DefaultMaxTokens is sent where the document does not set max_tokens, which the
// protocol requires.
const DefaultMaxTokens = 4096

// apiVersion is the version of the protocol.
const apiVersion = "2023-06-01"

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /v1/messages.
type Config struct {
	wire.Config
	NoCache bool // leaves out the markers of the prompt cache
	Bearer  bool // the key is a token for the Authorization header, not an API key
}

// Client calls one model of one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) {
	if c.Info.MaxTokens == 0 {
		c.Info.MaxTokens = DefaultMaxTokens
	}
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "message", Example: "https://api.anthropic.com",
		Params: modelparams.Messages, Turns: wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true}})
	if err != nil {
		return nil, err
	}
	at := s.Base
	if path.Base(at.Path) != "v1" {
		at = at.JoinPath("v1")
	}
	p := &protocol{Server: s, endpoint: at.JoinPath("messages").String(), header: http.Header{"Anthropic-Version": {apiVersion}}, cache: !c.NoCache}
	switch {
	case c.Key == "":
	case c.Bearer:
		p.header.Set("Authorization", "Bearer "+c.Key)
	default:
		p.header.Set("X-Api-Key", c.Key)
	}
	return &Client{wire.NewChat(s, p, "messages")}, nil
}

// vertexVersion is the version of the protocol in Vertex AI, a field of requests.
const vertexVersion = "vertex-2023-10-16"

// NewVertex makes a Client of a model in Google Cloud's Vertex AI. path is the path of the model,
// as a list; the key is a token. It calls nothing.
func NewVertex(c wire.Config, path []string) (*Client, error) {
	if c.Info.MaxTokens == 0 {
		c.Info.MaxTokens = DefaultMaxTokens
	}
	s, err := wire.NewServer(c, wire.Format{Answers: "message", Example: "https://us-east5-aiplatform.googleapis.com",
		Params: modelparams.VertexMessages, Turns: wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true}})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base.JoinPath(path...).String(), header: http.Header{}, vertex: true}
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return &Client{wire.NewChat(s, p, "messages")}, nil
}

// protocol is the Messages API. It is immutable.
type protocol struct {
	*wire.Server
	vertex   bool        // whether the model is one of Vertex AI
	endpoint string      // URL of requests
	header   http.Header // version and credential
	cache    bool        // whether requests have markers of the prompt cache
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	to := p.endpoint
	if p.vertex && err == nil {
		delete(body, "model")
		body["anthropic_version"] = vertexVersion
		to += map[bool]string{false: ":rawPredict", true: ":streamRawPredict"}[req.Stream]
	}
	return wire.Call{URL: to, Header: p.header, Body: body}, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }
