// Package openai speaks OpenAI's chat completions and embeddings over HTTP,
// streaming and not, with every server that understands them: OpenAI itself,
// Mistral, Ollama, vLLM, LM Studio, llama.cpp, gateways.
package openai

import (
	"context"
	"iter"
	"net/http"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /chat/completions.
type Config = wire.Config

// Client is one model behind one server. It is safe for concurrent use.
type Client struct {
	*wire.Server
	endpoint string // where requests go
	mistral  bool   // the server refuses what OpenAI's protocol has beyond its own
}

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c, wire.Form{Answers: "chat completion", Example: example,
		Reserved: []string{"messages", "model", "n", "stream", "tools"}})
	if err != nil {
		return nil, err
	}
	return &Client{Server: s, endpoint: s.Base.JoinPath("chat", "completions").String()}, nil
}

// NewMistral makes a Client of Mistral's own service, which speaks the same
// protocol but for some strictness.
func NewMistral(c Config) (*Client, error) {
	made, err := New(c)
	if err == nil {
		made.mistral = true
	}
	return made, err
}

// example is an address as errors show one.
const example = "http://localhost:11434/v1"

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
	err = c.Ask(ctx, wire.Call{URL: c.endpoint, Header: bearer(c.Key), Body: body}, func(resp *http.Response) error {
		if req.Stream && !wire.OnePiece(resp) {
			return c.Stream(ctx, resp, wire.NewEvents(resp.Body), &a, tell)
		}
		return c.Whole(ctx, resp, a.whole)
	})
	if err != nil {
		return nil, err
	}
	answer, err := a.response()
	if err != nil {
		return nil, c.NoForm(err)
	}
	return answer, nil
}

// bearer is the header of requests; an empty key sends no Authorization.
func bearer(key string) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}
