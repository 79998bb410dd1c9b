// Package ollama speaks Ollama's own protocol over HTTP, streaming and not.
// Unlike its OpenAI-compatible door this one takes the size of the context and
// whether the model is to think.
package ollama

import (
	"net/http"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

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
type Client struct{ wire.Chat }

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "chat answer", Example: "http://127.0.0.1:11434", Lines: true,
		Reserved: []string{"messages", "model", "stream", "tools"}})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base.JoinPath("api", "chat").String(), header: http.Header{}, window: c.ContextWindow}
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return &Client{wire.NewChat(s, p)}, nil
}

// protocol is Ollama's chat. It is changed by nobody.
type protocol struct {
	*wire.Server
	endpoint string      // where requests go
	header   http.Header // the credential
	window   int         // tokens that the model is to have room for, 0 where the server decides
}

// Request writes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body}, err
}

// Answer begins an answer.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }
