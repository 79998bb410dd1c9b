// Package openai speaks OpenAI's chat completions and embeddings over HTTP,
// streaming and not, with every server that understands them: OpenAI itself,
// Mistral, Ollama, vLLM, LM Studio, llama.cpp, gateways.
package openai

import (
	"net/http"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /chat/completions.
type Config = wire.Config

// Client is one model behind one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) { return newClient(c, false) }

// NewMistral makes a Client of Mistral's own service, which speaks the same
// protocol but for some strictness.
func NewMistral(c Config) (*Client, error) { return newClient(c, true) }

func newClient(c Config, mistral bool) (*Client, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "chat completion", Example: example,
		Reserved: []string{"messages", "model", "n", "stream", "tools"}})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base.JoinPath("chat", "completions").String(), mistral: mistral}
	return &Client{wire.NewChat(s, p)}, nil
}

// example is an address as errors show one.
const example = "http://localhost:11434/v1"

// protocol is chat completions. It is changed by nobody.
type protocol struct {
	*wire.Server
	endpoint string // where requests go
	mistral  bool   // the server refuses what OpenAI's protocol has beyond its own
}

// Request writes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.endpoint, Header: bearer(p.Key), Body: body}, err
}

// Answer begins an answer.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }

// bearer is the header of requests; an empty key sends no Authorization.
func bearer(key string) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}
