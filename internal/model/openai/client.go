// Package openai is a client of OpenAI's chat completions and embeddings, with and without
// streaming, for all servers with these protocols: OpenAI itself, Mistral, Ollama, vLLM,
// LM Studio, llama.cpp, gateways.
package openai

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
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

// AzureConfig is a deployment in Azure OpenAI. BaseURL is the endpoint of the resource, before
// /openai. Requests have the Key, or the token that Authorize adds.
type AzureConfig struct {
	Config
	Bearer     bool   // the key is a token for the Authorization header, not an API key
	Deployment string // the name of the deployment
	Version    string // of the protocol, such as 2024-10-21; empty for v1
}

// azureExample is a base URL for error messages.
const azureExample = "https://my-resource.openai.azure.com"

// NewAzure makes a Client of chat completions. It calls nothing.
func NewAzure(c AzureConfig) (*Client, error) {
	s, err := wire.NewServer(c.Config, chatFormat(azureExample))
	if err != nil {
		return nil, err
	}
	return &Client{wire.NewChat(s, newProtocol(s, c.target(s, "chat/completions")), "chat")}, nil
}

// NewAzureEmbedder makes an Embedder. It calls nothing.
func NewAzureEmbedder(c AzureConfig) (*Embedder, error) {
	s, err := wire.NewServer(c.Config, embeddingFormat(azureExample))
	if err != nil {
		return nil, err
	}
	return &Embedder{server: s, target: c.target(s, "embeddings")}, nil
}

// target returns the target of a method. The deployment is the name of the model in version
// v1, and a part of the path in earlier ones.
func (c AzureConfig) target(s *wire.Server, method string) target {
	to := target{header: bearer(""), model: c.Deployment}
	switch c.Version {
	case "", "v1", "preview":
		to.endpoint = s.Base.JoinPath("openai", "v1", method).String()
	default:
		if method == "responses" { // the name of the model in all versions
			to.endpoint = s.Base.JoinPath("openai", method).String()
			break
		}
		to.endpoint = s.Base.JoinPath("openai", "deployments", c.Deployment, method).String()
	}
	if c.Version != "" && c.Version != "v1" {
		to.endpoint += "?api-version=" + url.QueryEscape(c.Version)
	}
	switch {
	case s.Key == "":
	case c.Bearer:
		to.header = bearer(s.Key)
	default:
		to.header.Set("Api-Key", s.Key)
	}
	return to
}

// forMistral changes a message to one that Mistral accepts: without a participant's name,
// without roles that Mistral does not have, with ids of calls in Mistral's format.
func forMistral(m chat.Message) chat.Message {
	m.Name = ""
	if m.Role == chat.Developer {
		m.Role = chat.System
	}
	if m.ToolCallID != "" {
		m.ToolCallID = mistralID(m.ToolCallID)
	}
	return m.MapCalls(func(c chat.ToolCall) chat.ToolCall {
		c.ID = mistralID(c.ID)
		return c
	})
}

// mistralPart is a part of a message's content whose form is Mistral's own.
type mistralPart struct {
	Type     string `json:"type"`
	Sound    string `json:"input_audio,omitempty"` // base64
	Document string `json:"document_url,omitempty"`
}

// mistralMessage encodes a message of forMistral. Sounds are base64 without a format, and
// documents are addresses, which may have the data.
func mistralMessage(m chat.Message) (json.RawMessage, error) {
	raw := chat.OpenAI(m)
	own := func(b chat.Block) bool { return b.Type == "audio" || b.Type == "file" || b.Type == "bytes" }
	if !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return own(b) || b.Type == "video" }) {
		return raw, nil
	}
	var message map[string]json.RawMessage
	var content []json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &message), json.Unmarshal(message["content"], &content)); err != nil {
		return nil, err
	}
	for i, b := range m.Blocks {
		if b.Type == "video" {
			return nil, errors.New("videos cannot be sent")
		}
		if !own(b) {
			continue
		}
		part, err := mistralMedia(b, content[i])
		if err != nil {
			return nil, err
		}
		content[i] = part
	}
	var err error
	if message["content"], err = json.Marshal(content); err != nil {
		return nil, err
	}
	return json.Marshal(message)
}

// mistralMedia converts a part from OpenAI's form. A file is a PDF document or its address.
func mistralMedia(b chat.Block, part json.RawMessage) (json.RawMessage, error) {
	var given struct {
		Audio struct {
			Data string `json:"data"`
		} `json:"input_audio"`
		File struct {
			Data string `json:"file_data"`
		} `json:"file"`
	}
	if err := json.Unmarshal(part, &given); err != nil {
		return nil, err
	}
	switch {
	case b.Type == "audio":
		return json.Marshal(mistralPart{Type: "input_audio", Sound: given.Audio.Data})
	case given.File.Data != "":
		return json.Marshal(mistralPart{Type: "document_url", Document: given.File.Data})
	}
	return json.Marshal(mistralPart{Type: "document_url", Document: b.Text})
}

// mistralID returns the id of a call in Mistral's format, nine letters and digits: the id
// itself if it has the format, else one that is derived from it.
func mistralID(id string) string {
	const alphabet, size = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 9
	plain := func(r rune) bool { return !strings.ContainsRune(alphabet, r) }
	if len(id) == size && !strings.ContainsFunc(id, plain) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	out := make([]byte, size)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}

// cacheMode is a breakpoint of the prompt cache, and the option that the server sets no others.
type cacheMode struct {
	Mode string `json:"mode"`
}

// explicitCache returns the mode of breakpoints that requests set.
func explicitCache() *cacheMode { return &cacheMode{"explicit"} }

// cachedText is a part of a message with the end of a beginning that is cached.
type cachedText struct {
	Type       string     `json:"type"`
	Text       string     `json:"text"`
	Breakpoint *cacheMode `json:"prompt_cache_breakpoint"`
}

// hasBreakpoints reports whether a server caches the prompts of a model up to breakpoints.
func hasBreakpoints(s *wire.Server) bool {
	return s.Own && s.Info.Known != nil && s.Info.Known.Cache.Breakpoints == catalogue.Yes
}

// marksSystem reports whether a system message ends with a breakpoint: the server sets one at the end
// of the conversation itself, which other conversations with the same system message cannot use.
// Messages that are too short are not cached.
func marksSystem(s *wire.Server, text string) bool {
	const bytesPerToken = 3
	return !s.NoCache && hasBreakpoints(s) && len(text) >= bytesPerToken*s.Info.Known.Cache.MinTokens
}
