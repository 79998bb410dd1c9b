// Package anthropic speaks Anthropic's messages over HTTP, streaming and not.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"path"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens is the room for an answer where the document does not set
// max_tokens: the protocol wants a number.
const DefaultMaxTokens = 4096

// apiVersion is the version of the protocol that is spoken.
const apiVersion = "2023-06-01"

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /v1/messages.
type Config struct {
	wire.Config
	Bearer bool // the key is a token for the Authorization header, not an API key
}

// Client is one model behind one server. It is safe for concurrent use.
type Client struct {
	*wire.Server
	endpoint string
	header   http.Header
}

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	if c.Info.MaxTokens == 0 {
		c.Info.MaxTokens = DefaultMaxTokens
	}
	s, err := wire.NewServer(c.Config, wire.Form{Answers: "message", Example: DefaultBaseURL,
		Reserved: []string{"messages", "model", "stream", "system", "tools"}})
	if err != nil {
		return nil, err
	}
	at := s.Base
	if path.Base(at.Path) != "v1" {
		at = at.JoinPath("v1")
	}
	made := &Client{Server: s, endpoint: at.JoinPath("messages").String(), header: http.Header{"Anthropic-Version": {apiVersion}}}
	switch {
	case c.Key == "":
	case c.Bearer:
		made.header.Set("Authorization", "Bearer "+c.Key)
	default:
		made.header.Set("X-Api-Key", c.Key)
	}
	return made, nil
}

// Info tells what the model is.
func (c *Client) Info() model.Info { return c.Config.Info }

// Generate sends one request, once; model.WithPatience repeats.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return wire.Generate(ctx, func(ctx context.Context, tell wire.Tell) (*model.Response, error) {
		return c.generate(ctx, req, tell)
	})
}

func (c *Client) generate(ctx context.Context, req model.Request, tell wire.Tell) (*model.Response, error) {
	body, err := c.body(req)
	if err != nil {
		return nil, c.Fault(0, "the request cannot be written: "+err.Error())
	}
	var a assembler
	err = c.Ask(ctx, wire.Call{URL: c.endpoint, Header: c.header, Body: body}, func(resp *http.Response) error {
		if req.Stream && !wire.OnePiece(resp) {
			return c.Stream(ctx, resp, wire.NewEvents(resp.Body), &a, tell)
		}
		return c.Whole(ctx, resp, a.whole)
	})
	if err != nil {
		return nil, err
	}
	return a.response(), nil
}
