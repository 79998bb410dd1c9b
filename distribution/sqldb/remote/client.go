// Package remote has what drivers of database/sql for services with a JSON API over HTTP share:
// requests, and connections without a state.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/timer"
)

// Limits of requests.
const (
	requestTime  = 60 * time.Second // of one request; services answer after 10 s at most while a query runs
	stopTime     = 5 * time.Second  // for the request that stops a query
	maxAnswer    = 64 << 20         // bytes
	maxAttempts  = 5
	initialDelay = 200 * time.Millisecond
	maxDelay     = 10 * time.Second
	connections  = 16 // kept to a service
)

// Client sends requests to a service, again while it is overloaded or cannot be reached. It is safe
// for concurrent use.
type Client struct {
	// Authorize adds credentials to a request with the body.
	Authorize func(req *http.Request, body []byte) error
	// Failure returns the error of an answer that is not a success. again reports whether the same
	// request may succeed later.
	Failure func(status int, body []byte) (err error, again bool)

	http   *http.Client
	policy httpx.Policy
}

// NewClient returns a Client, which follows no redirects.
func NewClient(authorize func(*http.Request, []byte) error, failure func(int, []byte) (error, bool)) *Client {
	client := &http.Client{Transport: httpx.Transport(connections), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{Authorize: authorize, Failure: failure, http: client,
		policy: httpx.Policy{MaxAttempts: maxAttempts, InitialDelay: initialDelay, MaxDelay: maxDelay}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is a request of a service.
type Request struct {
	Method  string
	Address string
	Header  map[string]string
	In      any  // the body as JSON; nil for none
	Once    bool // the request is not repeated
	Starts  bool // the answer names what the request has started, and is awaited also when the context ends
}

// Call sends a request and decodes the answer, which is a success with the returned status.
func (c *Client) Call(ctx context.Context, r Request, answer any) (status int, err error) {
	var body []byte
	if r.In != nil {
		if body, err = json.Marshal(r.In); err != nil {
			return 0, err
		}
	}
	attempts := c.policy.Start()
	for {
		status, again, after, err := c.attempt(ctx, r, body, answer)
		if err == nil || !again || r.Once || !attempts.Next(ctx, after) {
			return status, err
		}
	}
}

// attempt sends one request. It reports whether another may succeed, and after which time.
func (c *Client) attempt(ctx context.Context, r Request, body []byte, answer any) (status int, again bool, after time.Duration, err error) {
	if r.Starts {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Address, bytes.NewReader(body))
	if err != nil {
		return 0, false, 0, errors.New("the endpoint is not an address")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range r.Header {
		req.Header.Set(name, v)
	}
	if err := c.Authorize(req, body); err != nil {
		return 0, false, 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, true, 0, errors.New(httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, true, 0, errors.New(httpx.Reason(err))
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		failure, again := c.Failure(resp.StatusCode, data)
		return resp.StatusCode, again || IsTemporary(resp.StatusCode), httpx.RetryAfter(resp.Header, time.Now()), failure
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return 0, false, 0, errors.New("the answer is not the JSON that was expected")
	}
	return resp.StatusCode, false, 0, nil
}

// IsTemporary reports whether a status states that the service is overloaded.
func IsTemporary(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// Stop sends a request that stops a query whose results are not needed any more, also when ctx has
// ended. An error has no effect: the query ends by itself.
func (c *Client) Stop(ctx context.Context, r Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	r.Once = true
	var ignored struct{}
	_, _ = c.Call(ctx, r, &ignored)
}

// Poll waits between two questions whether a query has ended, longer each time.
type Poll struct{ delay time.Duration }

// Waits between questions.
const (
	initialPoll = 100 * time.Millisecond
	maxPoll     = 2 * time.Second
)

// Wait waits, and returns the error of ctx if it ends.
func (p *Poll) Wait(ctx context.Context) error {
	p.delay = min(max(2*p.delay, initialPoll), maxPoll)
	return timer.Sleep(ctx, p.delay)
}
