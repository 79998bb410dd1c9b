// Package ollama speaks Ollama's own protocol over HTTP, streaming and not.
// Unlike its OpenAI-compatible door this one takes the size of the context and
// whether the model is to think.
package ollama

import (
	"context"
	"iter"
	"net/http"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// DefaultBaseURL is where Ollama listens unless it is told otherwise.
const DefaultBaseURL = "http://127.0.0.1:11434"

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /api/chat.
type Config struct {
	wire.Config
	// ContextWindow is how many tokens the document says the model has room for;
	// 0 leaves it to the server, which then takes few and cuts longer
	// conversations off without a word.
	ContextWindow int
}

// Client is one model behind one server. It is safe for concurrent use.
type Client struct {
	*wire.Server
	endpoint string
	header   http.Header
	window   int
}

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c.Config, wire.Form{Answers: "chat answer", Example: DefaultBaseURL,
		Reserved: []string{"messages", "model", "stream", "tools"}})
	if err != nil {
		return nil, err
	}
	made := &Client{Server: s, endpoint: s.Base.JoinPath("api", "chat").String(), header: http.Header{}, window: c.ContextWindow}
	if c.Key != "" {
		made.header.Set("Authorization", "Bearer "+c.Key)
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
		if req.Stream {
			return c.Stream(ctx, resp, wire.NewLines(resp.Body), &a, tell)
		}
		return c.Whole(ctx, resp, a.whole)
	})
	if err != nil {
		return nil, err
	}
	return a.response(), nil
}
