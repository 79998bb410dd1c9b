// Package openai speaks OpenAI's chat completions over HTTP, streaming and
// not, with every server that understands them: OpenAI itself, Ollama, vLLM,
// LM Studio, llama.cpp, gateways.
package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/qtype-dev/qtype/internal/outbound"
	"github.com/qtype-dev/qtype/model"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Limits of what a server may send.
const (
	maxAnswer = 64 << 20 // bytes of an answer that is not streamed
	maxEvent  = 16 << 20 // bytes of one event of a stream
	maxFault  = 64 << 10 // bytes of an error body that are read
)

// Config says which model of which server a Client calls.
type Config struct {
	Info       model.Info     // what the model is; ID goes into errors, Name into requests
	BaseURL    string         // the server's address, up to and without /chat/completions
	Key        string         // the credential; empty sends no Authorization header
	Credential string         // where the key came from, in a user's words: an auth's id or a variable's name
	Params     map[string]any // inference parameters, sent as they are
	HTTP       *http.Client   // carries the calls; nil means a plain one
}

// Client is one model behind one server. It is safe for concurrent use.
type Client struct {
	config   Config
	endpoint string                     // where requests go
	shown    string                     // the base URL as errors show it
	params   map[string]json.RawMessage // Config.Params as JSON
	http     *http.Client
}

// New makes a Client. Nothing is called yet.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("model %s: base_url must be an http or https address, such as http://localhost:11434/v1", c.Info.ID)
	}
	params, err := encodeParams(c.Params)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.Info.ID, err)
	}
	var caller http.Client // where the program gives none
	if c.HTTP != nil {
		caller = *c.HTTP
	}
	// A conversation and a key belong to the server that the document names, so
	// they are not carried on to where it points.
	caller.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{config: c, endpoint: base.JoinPath("chat", "completions").String(), shown: outbound.Server(base),
		params: params, http: &caller}, nil
}

// Info tells what the model is.
func (c *Client) Info() model.Info { return c.config.Info }

// Generate sends one request, once; model.WithPatience repeats.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		answer, err := c.generate(ctx, req, yield)
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(model.Event{}, err)
		default:
			yield(model.Event{Response: answer}, nil)
		}
	}
}

// errStopped says that the reader wants no more.
var errStopped = errors.New("stopped")

func (c *Client) generate(ctx context.Context, req model.Request, yield func(model.Event, error) bool) (*model.Response, error) {
	body, err := c.body(req)
	if err != nil {
		return nil, c.fault(0, "the request cannot be written: "+err.Error())
	}
	resp, err := c.post(ctx, body)
	if err != nil {
		return nil, c.broken(ctx, "cannot reach", err)
	}
	defer hangUp(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return nil, c.refusal(resp)
	}
	var a assembler
	if req.Stream && !onePiece(resp) {
		return c.stream(ctx, resp, &a, func(ev model.Event) bool { return yield(ev, nil) })
	}
	raw, err := readAll(resp.Body, maxAnswer)
	if err != nil {
		return nil, c.broken(ctx, "lost the connection to", err)
	}
	if err := a.whole(raw); err != nil {
		return nil, c.unreadable(resp, raw, err)
	}
	return c.answer(&a)
}

// onePiece tells whether a server answers a stream's request with one JSON
// object, as some do, not all of them under JSON's own content type.
func onePiece(resp *http.Response) bool {
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		return true
	case "text/event-stream":
		return false
	}
	body := bufio.NewReader(resp.Body)
	first, _ := body.Peek(1) // what is wrong with the body is told by whoever reads it
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	return string(first) == "{"
}

// answer is what the assembler made of the server's words.
func (c *Client) answer(a *assembler) (*model.Response, error) {
	r, err := a.response()
	if err != nil {
		return nil, c.fault(0, "the server's answer is no chat completion: "+err.Error())
	}
	return r, nil
}

func (c *Client) post(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Key)
	}
	return c.http.Do(req)
}

// stream reads an answer event by event and hands the deltas on.
func (c *Client) stream(ctx context.Context, resp *http.Response, a *assembler, yield func(model.Event) bool) (*model.Response, error) {
	events := newEvents(resp.Body)
	for {
		data, err := events.next()
		switch {
		case err != nil && a.finish != "" && isEnd(err): // whole, but for the closing mark that some servers leave out
			return c.answer(a)
		case err != nil:
			return nil, c.cutOff(ctx, resp, events, err)
		case string(data) == "[DONE]":
			return c.answer(a)
		case len(data) == 0: // a sign of life
			continue
		}
		deltas, err := a.chunk(data)
		if err != nil {
			return nil, c.unreadable(resp, data, err)
		}
		for _, ev := range deltas {
			if !yield(ev) {
				_ = resp.Body.Close() // nothing is left to wait for
				return nil, errStopped
			}
		}
	}
}

// cutOff makes an error of a stream that ended too early.
func (c *Client) cutOff(ctx context.Context, resp *http.Response, events *events, err error) error {
	switch {
	case errors.Is(err, io.EOF) && events.count == 0:
		return c.unreadable(resp, events.head, errors.New("no events"))
	case isEnd(err):
		f := c.fault(0, "the stream ended before the answer was complete")
		f.Temporary = true
		return c.unlessCancelled(ctx, f)
	}
	return c.broken(ctx, "lost the connection to", err)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// readAll reads a whole body up to limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, errTooLong
	}
	return raw, err
}

// hangUp reads what little may be left, so that the connection can be used
// again, and closes. A server that keeps it open has its connection cut.
func hangUp(body io.ReadCloser) {
	const grace = 50 * time.Millisecond
	cut := time.AfterFunc(grace, func() { _ = body.Close() })
	defer cut.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}
