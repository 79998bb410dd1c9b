// Package remote holds what the indexes of servers share: calls over HTTP, filters, the
// order of listings, and the form in which LlamaIndex stores chunks.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// Limits of requests, where the index does not set others.
const (
	defaultTimeout = 60 * time.Second
	defaultRetries = 3
	initialDelay   = 500 * time.Millisecond
	maxDelay       = 10 * time.Second
	maxResponse    = 64 << 20 // bytes
	maxConnections = 16
)

// Config describes the server of an index.
type Config struct {
	Store      string                            // for messages, such as Qdrant
	URL        string                            // the address before the paths of requests
	HTTP       *http.Client                      // carries the calls; nil means a client with default timeouts
	Transport  *http.Transport                   // instead of HTTP, closed with the Client; nil for none
	Header     http.Header                       // sent with each request
	Secrets    []string                          // never part of an error
	Timeout    time.Duration                     // of one request; 0 for the default
	MaxRetries *int                              // repetitions of a failed request; nil for the default
	Sign       func(*http.Request, []byte) error // signs a request with its body; nil for none
	Temporary  func(*StatusError) bool           // reports answers that are temporary failures, besides overload; nil for none
}

// Client calls a server with JSON over HTTP. It is safe for concurrent use.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
	policy httpx.Policy
	owned  *http.Transport // closed by Close; nil if the transport is the caller's
}

// NewClient makes a Client. It calls nothing.
func NewClient(c Config) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || !spec.IsServerAddress(c.URL) {
		return nil, fmt.Errorf("the address of %s must begin with http:// or https:// and a host", c.Store)
	}
	if password, ok := base.User.Password(); ok {
		c.Header = c.Header.Clone()
		if c.Header == nil {
			c.Header = http.Header{}
		}
		if c.Header.Get("Authorization") == "" {
			c.Header.Set("Authorization", "Basic "+encodeBasic(base.User.Username(), password))
		}
		c.Secrets = append(c.Secrets, password)
	}
	base.User = nil
	made := &Client{config: c, base: base, policy: httpx.Policy{MaxAttempts: 1 + defaultRetries, InitialDelay: initialDelay, MaxDelay: maxDelay}}
	if c.MaxRetries != nil {
		made.policy.MaxAttempts = 1 + max(0, *c.MaxRetries)
	}
	made.config.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	made.owned = c.Transport
	if c.HTTP == nil && made.owned == nil {
		made.owned = httpx.Transport(maxConnections)
	}
	if made.owned != nil {
		c.HTTP = &http.Client{Transport: made.owned}
	}
	client := *c.HTTP
	// A redirect would carry the credentials to a server that the document does not name.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	made.http = &client
	return made, nil
}

// Close releases the connections.
func (c *Client) Close() error {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
	return nil
}

// StatusError is an answer of the server that is not a success.
type StatusError struct {
	Status  int    // the HTTP status
	Message string // the message of the server, on one line
	server  string
}

// Error names the server, the status and its message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.server, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// IsStatus reports whether an error is an answer with this status.
func IsStatus(err error, status int) bool {
	answer, ok := errors.AsType[*StatusError](err)
	return ok && answer.Status == status
}

// Do sends a request and decodes the answer into a value, which may be nil. A body is sent
// as JSON; a []byte has JSON lines and is sent as it is. Requests must be repeatable: they
// are sent again while the server is overloaded or not reachable.
func (c *Client) Do(ctx context.Context, method, path string, body, into any) error {
	data, kind, err := encode(body)
	if err != nil {
		return err
	}
	attempts := c.policy.Start()
	for {
		answer, wait, err := c.attempt(ctx, method, path, data, kind)
		if err == nil {
			return c.decode(answer, into)
		}
		if wait < 0 || !attempts.Next(ctx, wait) {
			return err
		}
	}
}

// encode returns the body of a request and its media type.
func encode(body any) ([]byte, string, error) {
	switch b := body.(type) {
	case nil:
		return nil, "", nil
	case []byte:
		return b, "application/x-ndjson", nil
	}
	data, err := EncodeJSON(body)
	return data, "application/json", err
}

// EncodeJSON encodes a value without escapes for HTML, as Python does.
func EncodeJSON(v any) ([]byte, error) {
	data, err := textfmt.CompactJSON(v)
	if err != nil {
		return nil, fmt.Errorf("the value cannot be stored as JSON: %w", err)
	}
	return data, nil
}

// attempt sends a request once. A wait below 0 means that a repetition is useless.
func (c *Client) attempt(ctx context.Context, method, path string, body []byte, kind string) (answer []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, -1, fmt.Errorf("%s: the request cannot be made", c.server())
	}
	req.Header.Set("User-Agent", httpx.UserAgent())
	for name, values := range c.config.Header {
		req.Header[name] = values
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.config.Sign != nil {
		if err := c.config.Sign(req, body); err != nil {
			return nil, -1, err
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.retryable(ctx), fmt.Errorf("%s: %s", c.server(), c.scrub(httpx.Reason(err)))
	}
	defer func() { _ = resp.Body.Close() }() // everything of interest was read
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, c.retryable(ctx), fmt.Errorf("%s: %s", c.server(), c.scrub(httpx.Reason(err)))
	case len(answer) > maxResponse:
		return nil, -1, fmt.Errorf("%s: the answer is larger than %d MB", c.server(), maxResponse>>20)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		err := &StatusError{Status: resp.StatusCode, Message: c.scrub(message(answer)), server: c.server()}
		return nil, c.retryWait(resp, err), err
	}
	return answer, 0, nil
}

// retryable returns the wait after a failed connection: none if the time is over.
func (c *Client) retryable(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return -1
	}
	return 0
}

// retryWait returns the wait before a repetition, below 0 if that is useless.
func (c *Client) retryWait(resp *http.Response, err *StatusError) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return httpx.RetryAfter(resp.Header, time.Now())
	}
	if c.config.Temporary != nil && c.config.Temporary(err) {
		return 0
	}
	return -1
}

// server names the server in messages.
func (c *Client) server() string {
	return c.config.Store + " at " + httpx.Server(c.base)
}

func (c *Client) scrub(text string) string {
	for _, secret := range c.config.Secrets {
		text = httpx.Scrub(text, secret)
	}
	return text
}

// decode reads the JSON of an answer.
func (c *Client) decode(answer []byte, into any) error {
	if into == nil {
		return nil
	}
	if err := DecodeJSON(answer, into); err != nil {
		return fmt.Errorf("%s: the answer is not the JSON that was expected", c.server())
	}
	return nil
}

// DecodeJSON decodes a value. Numbers in values of type any become json.Number.
func DecodeJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// Remove deletes what is at a path. It may be missing.
func (c *Client) Remove(ctx context.Context, path string) error {
	err := c.Do(ctx, http.MethodDelete, path, nil, nil)
	if IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}
