// Package langchain is the bridge to models for which langchaingo has a client:
// `provider: langchaingo:<name>`. It carries text, and images where the client
// does. Tools are rejected, because none of these clients can carry a tool call
// and its result through a conversation. OpenAI-compatible servers, which most of
// these companies run too, are better called by `provider: openai` and a base_url.
//
// langchaingo v0.1.14 sends parameters that the document does not set, loses statuses and
// Retry-After, and takes an answer that was cut off for a short one. The
// transport of this package corrects that between langchaingo and the network.
package langchain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Config is the model and the server to call. BaseURL and HTTP must be set.
type Config struct {
	wire.Config
	Timeout time.Duration // limit of one call, for clients that ignore the context
}

// client describes one of langchaingo's clients.
type client struct {
	images         bool                 // it carries images
	singlePrompt   bool                 // it carries one prompt only: a conversation is written as a text
	ignoresContext bool                 // it does not stop when its context ends, and takes no transport
	params         modelparams.Protocol // decides which parameters can be sent
	rewrite        func(body, params map[string]any)
	finish         func(tail []byte) finishReason
	open           func(c Config, carrier *http.Client, base *url.URL) (llms.Model, error)
}

// NewHuggingFace makes a client of Hugging Face's text generation. It calls nothing.
func NewHuggingFace(c Config) (*Model, error) { return newModel(c, huggingFace()) }

// NewMistral makes a client of Mistral's service. It calls nothing.
func NewMistral(c Config) (*Model, error) { return newModel(c, mistral()) }

// NewOllama makes a client of an Ollama server. It calls nothing.
func NewOllama(c Config) (*Model, error) { return newModel(c, ollama()) }

// Model calls a model by langchaingo. It is safe for concurrent use.
type Model struct {
	config Config
	client client
	server string // the server's address in error messages
	llm    llms.Model
}

func newModel(c Config, cl client) (*Model, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || !spec.IsHTTPAddress(c.BaseURL) {
		return nil, fmt.Errorf("model %s: base_url must be an http or https address", c.Info.ID)
	}
	if _, err := cl.params.Encode(c.Params); err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Info.ID, err)
	}
	llm, err := cl.open(c, fixTransport(c, cl), base)
	if err != nil {
		return nil, fmt.Errorf("model %s: %s", c.Info.ID, httpx.Scrub(err.Error(), c.Key))
	}
	c.Info.Endpoint = httpx.Server(base)
	return &Model{config: c, client: cl, server: httpx.Server(base), llm: llm}, nil
}

// Info describes the model.
func (m *Model) Info() model.Info { return m.config.Info }

// Generate sends one request, once.
func (m *Model) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return wire.Generate(ctx, func(ctx context.Context, emit wire.Emit) (*model.Response, error) {
		return m.generate(ctx, req, emit)
	})
}

var errStopped = errors.New("stopped")

func (m *Model) generate(ctx context.Context, req model.Request, emit wire.Emit) (*model.Response, error) {
	if len(req.Tools) > 0 {
		return nil, m.newError(fmt.Sprintf("%s cannot call tools; an OpenAI-compatible server can: provider openai with a base_url", m.config.Info.Provider))
	}
	messages, err := m.messages(req.Messages)
	if err != nil {
		return nil, m.newError(err.Error())
	}
	var record record
	ctx = context.WithValue(ctx, recordKey{}, &record)
	opts, streamed := m.options(), false
	if req.Stream && !m.client.ignoresContext && !m.client.singlePrompt {
		opts = append(opts, llms.WithStreamingFunc(func(_ context.Context, piece []byte) error {
			if streamed = streamed || len(piece) > 0; len(piece) > 0 && !emit(model.Event{Text: string(piece)}) {
				return errStopped
			}
			return nil
		}))
	}
	resp, err := m.ask(ctx, messages, opts)
	if err != nil {
		return nil, m.failure(ctx, &record, err)
	}
	r, err := m.response(resp, &record)
	if err != nil {
		return nil, m.failure(ctx, &record, err)
	}
	if text := r.Message.Text(); req.Stream && !streamed && text != "" && !emit(model.Event{Text: text}) {
		return nil, errStopped
	}
	return r, wire.Unfinished(m.config.Info, r)
}

// ask calls langchaingo. A client that ignores the context is left running when the
// context ends; its own time limit ends it.
func (m *Model) ask(ctx context.Context, messages []llms.MessageContent, opts []llms.CallOption) (*llms.ContentResponse, error) {
	if !m.client.ignoresContext {
		return m.llm.GenerateContent(ctx, messages, opts...)
	}
	type outcome struct {
		resp *llms.ContentResponse
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		resp, err := m.llm.GenerateContent(ctx, messages, opts...)
		done <- outcome{resp, err}
	}()
	select {
	case o := <-done:
		return o.resp, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// response checks that the answer is complete and converts it.
func (m *Model) response(resp *llms.ContentResponse, rec *record) (*model.Response, error) {
	if resp == nil || len(resp.Choices) == 0 || resp.Choices[0] == nil {
		return nil, errors.New("the response is empty")
	}
	choice := resp.Choices[0]
	r := &model.Response{Message: chat.Text(chat.Assistant, choice.Content), Finish: choice.StopReason, Usage: usage(choice.GenerationInfo)}
	if m.client.finish != nil {
		end := m.client.finish(rec.tail)
		if !end.whole {
			return nil, errTruncated
		}
		r.Finish = end.reason
	}
	r.Finish, r.Reason = wire.Finish(r.Finish, 0)
	return r, nil
}

var errTruncated = errors.New("the answer ended before it was complete")

func (m *Model) newError(message string) *model.Error {
	return &model.Error{Model: m.config.Info.ID, Endpoint: m.server, Message: message}
}
