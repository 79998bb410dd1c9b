// Package bedrock is a client of Amazon Bedrock: chat models by Converse, with and without
// streaming, and the embedding models of Amazon and Cohere by InvokeModel.
package bedrock

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
)

// Config is the model and the server that a Client calls. BaseURL is the server's address
// without /model. Requests have the Key, which is an API key of Bedrock, or the
// signature that Authorize adds.
type Config = wire.Config

// ChatConfig is the Config of a chat model.
type ChatConfig struct {
	Config
	Cache string // prompt_cache of the document: none leaves out the markers; 5m or 1h is their lifetime
}

// The values of prompt_cache that are not lifetimes.
const (
	cacheNone    = "none"
	cacheDefault = "auto"
)

// example is a base URL for error messages.
const example = "https://bedrock-runtime.us-east-1.amazonaws.com"

// Client calls one chat model. It is safe for concurrent use.
type Client struct{ wire.Chat }

// New makes a Client. It calls nothing.
func New(c ChatConfig) (*Client, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "Converse response", Example: example, Records: newFrames,
		Params: modelparams.Converse,
		Turns:  wire.TurnRules{UserFirst: true, UserLast: true, NoBlank: true, SystemWithin: c.Info.Known != nil && c.Info.Known.MidSystem == catalogue.Yes}})
	if err != nil {
		return nil, err
	}
	return &Client{wire.NewChat(s, &protocol{Server: s, cache: cmp.Or(c.Cache, cacheDefault)}, "converse")}, nil
}

// protocol is Converse.
type protocol struct {
	*wire.Server
	cache string // prompt_cache
}

// Request encodes a request.
func (p *protocol) Request(req model.Request) (wire.Call, error) {
	body, err := p.body(req)
	method := "converse"
	if req.Stream {
		method = "converse-stream"
	}
	answer := &assembler{schema: p.schemaForm(req) == schemaTool}
	return wire.Call{URL: address(p.Server, method), Header: header(p.Key), Body: body, Answer: answer}, err
}

// Answer returns a reader for one response.
func (p *protocol) Answer() wire.ResponseReader { return &assembler{} }

// address returns the URL of a method of the model. Its id may be an ARN, with slashes and
// colons; AWS expects them escaped, also in the signature.
func address(s *wire.Server, method string) string {
	id := strings.ReplaceAll(url.PathEscape(s.Info.Name), ":", "%3A")
	return strings.TrimRight(s.Base.String(), "/") + "/model/" + id + "/" + method
}

// header returns the headers of a request.
func header(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return h
}
