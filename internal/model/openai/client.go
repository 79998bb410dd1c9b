// Package openai is a client of OpenAI's chat completions and embeddings, with and without
// streaming, for all servers with these protocols: OpenAI itself, Mistral, Ollama, vLLM,
// LM Studio, llama.cpp, gateways.
package openai

import (
	"net/http"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /chat/completions.
type Config = wire.Config

// Client calls one model of one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) { return newClient(c, false) }

// NewMistral makes a Client of Mistral's service, whose protocol is the same but
// stricter. It calls nothing.
func NewMistral(c Config) (*Client, error) { return newClient(c, true) }

func newClient(c Config, mistral bool) (*Client, error) {
	form := chatFormat(example)
	if mistral {
		form.Turns = wire.TurnRules{UserLast: true, NoBlank: true, Answered: true}
	}
	s, err := wire.NewServer(c, form)
	if err != nil {
		return nil, err
	}
	p := newProtocol(s, newTarget(s, "chat/completions"))
	if p.mistral = mistral; mistral {
		p.returns = returnPolicy{texts: true, past: true}
	}
	return &Client{wire.NewChat(s, p, "chat")}, nil
}

// chatFormat describes chat completions.
func chatFormat(example string) wire.Format {
	return wire.Format{Answers: "chat completion", Example: example, Params: modelparams.ChatCompletions, Forbids: true}
}

// target is where the requests of a client go.
type target struct {
	endpoint string      // URL of requests
	header   http.Header // credentials and accepted types
	model    string      // the name of the model in requests
}

// newTarget returns the target of a method of a server with OpenAI's protocol.
func newTarget(s *wire.Server, method string) target {
	return target{endpoint: s.Base.JoinPath(method).String(), header: bearer(s.Key), model: s.Info.Name}
}

// example is a base URL for error messages.
const example = "http://localhost:11434/v1"

// protocol is chat completions. It is immutable.
type protocol struct {
	*wire.Server
	target
	mistral bool // whether the server rejects what Mistral's protocol does not have
	returns returnPolicy
}

func newProtocol(s *wire.Server, t target) *protocol {
	return &protocol{Server: s, target: t, returns: newReturnPolicy(s.Info.Known, s.Encoded["thinking"])}
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	answer := &assembler{reasoning: newReasoning(p.Server), texts: textProperties(req.Tools)}
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body, Answer: answer}, err
}

// Answer returns a reader for the response to a request without tools.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{reasoning: newReasoning(p.Server)} }

// bearer returns the headers of requests; an empty key sends no Authorization.
func bearer(key string) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}
