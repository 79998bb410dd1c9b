// Package googleai is a client of the Gemini API (generativelanguage.googleapis.com),
// with and without streaming.
package googleai

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

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
	s, err := wire.NewServer(c, wire.Format{Answers: "Gemini response", Example: "https://generativelanguage.googleapis.com",
		Reserved: []string{"contents", "model", "stream", "systemInstruction", "system_instruction", "tools", "n", "candidateCount", "candidate_count"}})
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
	return &Client{wire.NewChat(s, p)}, nil
}

// protocol is Gemini's generateContent.
type protocol struct {
	*wire.Server
	endpoint   *url.URL          // URL of the model, without the method
	header     http.Header       // the credential
	signatures thoughtSignatures // of the calls that the model made
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

// thoughtSignatures stores the signatures that Gemini requires to be sent back with the
// tool calls that it made. A turn with tools ends after a few calls of one process, so
// the newest ones are enough, and conversations need not store them.
type thoughtSignatures struct {
	mu    sync.Mutex
	order []string          // ids of calls, the oldest first
	of    map[string]string // signatures by the id of the call
}

// put stores the signature of a call.
func (s *thoughtSignatures) put(id, signature string) {
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

// find returns the signature of a call; empty for an unknown one.
func (s *thoughtSignatures) find(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}
