// Package anthropic is a client of Anthropic's Messages API, with and without streaming.
package anthropic

import (
	"net/http"
	"path"

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
		Reserved: []string{"messages", "model", "stream", "system", "tools"}})
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
	return &Client{wire.NewChat(s, p)}, nil
}

// protocol is the Messages API. It is immutable.
type protocol struct {
	*wire.Server
	endpoint string      // URL of requests
	header   http.Header // version and credential
	cache    bool        // whether requests have markers of the prompt cache
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body}, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }
