// Package googleai is a client of the Gemini API (generativelanguage.googleapis.com),
// with and without streaming.
package googleai

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// apiVersion is the version of the protocol where the base URL does not end with one.
const apiVersion = "v1beta"

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /v1beta/models.
type Config = wire.Config

// Client calls one model of one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c, format("https://generativelanguage.googleapis.com"))
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base, header: http.Header{}}
	if !wire.IsVersion(path.Base(s.Base.Path)) {
		p.endpoint = p.endpoint.JoinPath(apiVersion)
	}
	p.endpoint = p.endpoint.JoinPath("models", strings.TrimPrefix(c.Info.Name, "models/"))
	if c.Key != "" {
		p.header.Set("X-Goog-Api-Key", c.Key)
	}
	return &Client{wire.NewChat(s, p, "gemini")}, nil
}

// format describes the wire format.
func format(example string) wire.Format {
	return wire.Format{Answers: "Gemini response", Example: example,
		Params: modelparams.Gemini, Turns: wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true}}
}

// protocol is Gemini's generateContent.
type protocol struct {
	*wire.Server
	endpoint   *url.URL            // URL of the model, without the method
	header     http.Header         // the credential
	signatures wire.Recent[string] // of the calls that the model made, by their ids: Gemini requires them to be sent back
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.address(req.Stream), Header: p.header, Body: body}, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{signatures: &p.signatures} }

// address returns the URL of a request: the method is part of the path.
func (p *protocol) address(stream bool) string {
	to := *p.endpoint
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
