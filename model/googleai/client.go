// Package googleai speaks the Gemini API (generativelanguage.googleapis.com)
// over HTTP, streaming and not.
package googleai

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// apiVersion is the version of the protocol that is spoken, where the base URL
// names none.
const apiVersion = "v1beta"

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /v1beta/models.
type Config = wire.Config

// Client is one model behind one server. It is safe for concurrent use.
type Client struct {
	*wire.Server
	endpoint *url.URL
	header   http.Header
	seals    seals
}

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c, wire.Form{Answers: "content", Example: DefaultBaseURL,
		Reserved: []string{"contents", "model", "stream", "systemInstruction", "system_instruction", "tools", "n", "candidateCount", "candidate_count"}})
	if err != nil {
		return nil, err
	}
	made := &Client{Server: s, endpoint: s.Base, header: http.Header{}}
	if strings.Trim(s.Base.Path, "/") == "" {
		made.endpoint = made.endpoint.JoinPath(apiVersion)
	}
	made.endpoint = made.endpoint.JoinPath("models", strings.TrimPrefix(c.Info.Name, "models/"))
	if c.Key != "" {
		made.header.Set("X-Goog-Api-Key", c.Key)
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
	a := assembler{seals: &c.seals}
	err = c.Ask(ctx, wire.Call{URL: c.address(req.Stream), Header: c.header, Body: body}, func(resp *http.Response) error {
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

// address is where a request goes: the method is a part of the path.
func (c *Client) address(stream bool) string {
	to := *c.endpoint
	method := ":generateContent"
	if stream {
		method = ":streamGenerateContent"
		to.RawQuery = "alt=sse"
	}
	to.Path += method
	if to.RawPath != "" {
		to.RawPath += method
	}
	return to.String()
}

// seals keep what Gemini wants to see again beside a tool call that it made: a
// signature of its thoughts. A turn with tools is over after a few calls of one
// process, so the newest are enough, and no conversation has to hold them.
type seals struct {
	mu    sync.Mutex
	order []string          // ids of calls, the oldest first
	of    map[string]string // by the call's id
}

// keep notes the signature of a call.
func (s *seals) keep(id, signature string) {
	const most = 1024
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]string{}
	}
	if len(s.order) == most {
		delete(s.of, s.order[0])
		s.order = s.order[1:]
	}
	s.order = append(s.order, id)
	s.of[id] = signature
}

// find is the signature of a call; empty where none is known.
func (s *seals) find(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}
