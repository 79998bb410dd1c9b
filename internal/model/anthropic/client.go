// Package anthropic is a client of Anthropic's Messages API, with and without streaming: at
// Anthropic, in Vertex AI, and at servers with the same protocol.
//
// A message keeps the content blocks of an answer in their order, and all but texts exactly as
// they came. They go back to the model that made them.
package anthropic

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// The values of max_tokens, which the protocol requires, where the document does not set it. The
// thinking of a model counts into it, and its default is bounded because some limits of rates count
// what a request reserves.
const (
	DefaultMaxTokens      = 4096  // of models that the catalogue does not have
	defaultMaxTokensKnown = 32000 // of others, unless the model writes less
)

// The versions of the protocol. The newer one has no parameters of sampling.
const (
	apiVersion    = "2023-06-01"
	newVersion    = "2026-10-21" // at Anthropic
	vertexVersion = "vertex-2023-10-16"
)

// Config is the model and the server that a Client calls. BaseURL is the server's
// address without /v1/messages.
type Config struct {
	wire.Config
	Cache  string // lifetime of the prompt cache: 5m or 1h; auto or empty for the provider's own, none for no markers
	Bearer bool   // the key is a token for the Authorization header, not an API key
}

// Client calls one model of one server. It is safe for concurrent use.
type Client struct {
	wire.Chat
	paused  wire.Chat // continues an answer that the provider paused
	batched bool      // no answer is streamed
}

// New makes a Client. It calls nothing.
func New(c Config) (*Client, error) {
	p, err := newProtocol(c)
	if err != nil {
		return nil, err
	}
	return newClient(p), nil
}

// newProtocol makes the protocol of Anthropic's own API.
func newProtocol(c Config) (*protocol, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "message", Example: "https://api.anthropic.com",
		Params: modelparams.Messages, Turns: turnRules(c.Info.Known), Forbids: true})
	if err != nil {
		return nil, err
	}
	at := s.Base
	if path.Base(at.Path) != "v1" {
		at = at.JoinPath("v1")
	}
	p := &protocol{Server: s, endpoint: at.JoinPath("messages").String(), cache: c.Cache, header: http.Header{"Anthropic-Version": {apiVersion}}}
	p.official = strings.HasSuffix("."+s.Base.Hostname(), ".anthropic.com")
	if p.official && !samples(s.Encoded) {
		p.header.Set("Anthropic-Version", newVersion)
	}
	switch {
	case c.Key == "":
	case c.Bearer:
		p.header.Set("Authorization", "Bearer "+c.Key)
	default:
		p.header.Set("X-Api-Key", c.Key)
	}
	return p, nil
}

// NewVertex makes a Client of a model in Google Cloud's Vertex AI. path is the path of the model,
// as a list; the key is a token. It calls nothing.
func NewVertex(c Config, path []string) (*Client, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "message", Example: "https://us-east5-aiplatform.googleapis.com",
		Params: modelparams.VertexMessages, Turns: turnRules(c.Info.Known), Forbids: true})
	if err != nil {
		return nil, err
	}
	p := &protocol{Server: s, endpoint: s.Base.JoinPath(path...).String(), header: http.Header{}, vertex: true, cache: c.Cache}
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return newClient(p), nil
}

// newClient completes the protocol and makes its client.
func newClient(p *protocol) *Client {
	var set wire.Count
	_ = json.Unmarshal(p.Encoded["max_tokens"], &set) // 0 without the parameter
	p.Info.MaxTokens = cmp.Or(int(set), p.Info.MaxTokens, defaultMaxTokens(p.Info.Known, p.Encoded))
	p.betas = betasOf(p.Encoded)
	p.given = strings.FieldsFunc(p.Headers.Get(betaHeader), func(r rune) bool { return r == ',' || r == ' ' })
	talk := wire.NewChat(p.Server, p, "messages")
	return &Client{Chat: talk, paused: talk.Continuing(&continuation{p}), batched: p.Batched}
}

// defaultMaxTokens returns max_tokens of a document that does not set it. It must exceed the
// budget for thinking.
func defaultMaxTokens(known *catalogue.Model, params map[string]json.RawMessage) int {
	if known == nil || known.MaxOutput == 0 {
		return DefaultMaxTokens
	}
	var thinking struct {
		Budget wire.Count `json:"budget_tokens"`
	}
	_ = json.Unmarshal(params["thinking"], &thinking) // no budget unless it is a map
	return min(known.MaxOutput, defaultMaxTokensKnown+int(thinking.Budget))
}

// samples reports whether parameters set how answers are sampled.
func samples(params map[string]json.RawMessage) bool {
	return slices.ContainsFunc([]string{"temperature", "top_p", "top_k"}, func(name string) bool { return params[name] != nil })
}

// protocol is the Messages API. It is immutable.
type protocol struct {
	*wire.Server
	vertex   bool        // whether the model is one of Vertex AI
	official bool        // whether the server is Anthropic's own
	endpoint string      // URL of requests
	header   http.Header // version and credential
	cache    string      // lifetime of the prompt cache
	betas    []string    // the features that the parameters of the document need
	given    []string    // the features that its headers name, which are added to requests
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, features, dropped, err := p.body(req)
	if err != nil {
		return wire.Call{}, err
	}
	to, header := p.endpoint, p.header
	if p.vertex {
		delete(body, "model")
		body["anthropic_version"] = vertexVersion
		to += map[bool]string{false: ":rawPredict", true: ":streamRawPredict"}[req.Stream]
	}
	features = slices.DeleteFunc(features, func(f string) bool { return slices.Contains(p.given, f) })
	if len(features) > 0 {
		slices.Sort(features)
		header = maps.Clone(header)
		header[betaHeader] = []string{strings.Join(slices.Compact(features), ",")}
	}
	return wire.Call{URL: to, Header: header, Body: body, Dropped: dropped}, nil
}

// continuation is the protocol of requests that end with an answer which the provider continues.
type continuation struct{ *protocol }

// Request encodes a request.
func (p *continuation) Request(req model.Request) (wire.Call, error) {
	call, err := p.protocol.Request(req)
	answer := &assembler{}
	if n := len(req.Messages); n > 0 {
		answer.follow(req.Messages[n-1])
	}
	call.Answer = answer
	return call, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }

// isClaude reports whether the model is one of Anthropic's, at any server.
func (p *protocol) isClaude() bool {
	return p.vertex || p.official || p.Info.Known != nil && p.Info.Known.Provider == "anthropic"
}

// bindsSchemas reports whether the model can be bound to the schemas of its answer and of tools.
func (p *protocol) bindsSchemas() bool {
	return p.isClaude() && (p.Info.Known == nil || p.Info.Known.Structured.JSONSchema == catalogue.Yes)
}

// thinksAdaptively reports whether the model is one with adaptive thinking, which has the newest
// tools, at Anthropic or behind a gateway.
func (p *protocol) thinksAdaptively() bool {
	return !p.vertex && p.Info.Known != nil && slices.Contains(p.Info.Known.Reasoning.ThinkingTypes, "adaptive")
}

// rejects reports whether a model is known to refuse a parameter.
func rejects(known *catalogue.Model, parameter string) bool {
	return known != nil && slices.ContainsFunc(known.Rejected, func(r catalogue.Rejection) bool {
		return slices.Contains(r.Parameters, parameter)
	})
}

// turnRules are what the protocol requires of the order of messages. Newer models do not continue an
// answer that the conversation ends with.
func turnRules(known *catalogue.Model) wire.TurnRules {
	return wire.TurnRules{UserFirst: true, UserLast: rejects(known, "prefill"), NoBlank: true, SystemWithin: known != nil && known.MidSystem == catalogue.Yes}
}
