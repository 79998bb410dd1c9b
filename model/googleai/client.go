// Package googleai speaks the Gemini API (generativelanguage.googleapis.com)
// over HTTP, streaming and not.
package googleai

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/internal/wire"
)

// apiVersion is the version of the protocol that is spoken, where the base URL
// names none.
const apiVersion = "v1beta"

// Config says which model of which server a Client calls: BaseURL is the
// server's address up to and without /v1beta/models.
type Config = wire.Config

// Client is one model behind one server. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	s, err := wire.NewServer(c, wire.Format{Answers: "Gemini response", Example: "https://generativelanguage.googleapis.com",
		Reserved: []string{"contents", "model", "stream", "systemInstruction", "system_instruction", "tools", "n", "candidateCount", "candidate_count"}})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base, header: http.Header{}}
	if strings.Trim(s.Base.Path, "/") == "" {
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
	endpoint *url.URL          // of the model, without the method
	header   http.Header       // the credential
	seals    thoughtSignatures // of the calls that its models made
}

// Request writes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	return wire.Call{URL: p.address(req.Stream), Header: p.header, Body: body}, err
}

// Answer begins an answer.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{seals: &p.seals} }

// address is where a request goes: the method is a part of the path.
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

// thoughtSignatures keep what Gemini wants to see again beside a tool call that it made: a
// signature of its thoughts. A turn with tools is over after a few calls of one
// process, so the newest are enough, and no conversation has to hold them.
type thoughtSignatures struct {
	mu    sync.Mutex
	order []string          // ids of calls, the oldest first
	of    map[string]string // by the call's id
}

// put notes the signature of a call.
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

// find is the signature of a call; empty where none is known.
func (s *thoughtSignatures) find(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}
