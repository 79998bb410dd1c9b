// Package ollama is a client of Ollama's own protocol, with and without streaming. Unlike
// Ollama's OpenAI-compatible API it accepts the size of the context and whether the model
// should reason.
package ollama

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /api/chat.
type Config struct {
	wire.Config
	// ContextWindow is sent as the size of the context; 0 uses the default of the server: 4,096,
	// 32,768 or 262,144 tokens with less than 24, less than 48, or more GiB of GPU memory. Longer
	// conversations are truncated without an error.
	ContextWindow int
}

// Client calls one model of one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "chat answer", Example: "http://127.0.0.1:11434", Lines: true,
		Params: modelparams.Ollama})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base.JoinPath("api", "chat").String(), header: http.Header{}, window: c.ContextWindow}
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return &Client{wire.NewChat(s, p, "ollama")}, nil
}

// protocol is Ollama's chat. It is immutable.
type protocol struct {
	*wire.Server
	endpoint string      // URL of requests
	header   http.Header // the credential
	window   int         // size of the context in tokens, 0 for the server's default
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.endpoint, Header: p.header, Body: body}, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }

// HostURL returns the URL of the server that OLLAMA_HOST names, read as Ollama
// does: a host, a host and a port, or a URL. The addresses of a server that
// listens on all interfaces become that of the local host.
func HostURL(text string) string {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	host, port := u.Hostname(), u.Port()
	if port == "" && u.Scheme == "http" {
		port = "11434"
	}
	if host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if port != "" {
		u.Host = net.JoinHostPort(host, port)
	}
	return u.String()
}
