//go:build !js

package remotefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

const (
	maxRedirects = 5                // per address
	idleTimeout  = 30 * time.Second // default of Client.IdleTimeout
)

// errIdleTimeout is the cause of canceling a call whose server sends nothing.
var errIdleTimeout = fmt.Errorf("idle: %w", os.ErrDeadlineExceeded)

// httpClient is the client of all calls, except in a browser.
type httpClient = http.Client

// httpRequest is a request of it.
type httpRequest = http.Request

// statusText returns the name of a status.
func statusText(code int) string { return http.StatusText(code) }

// reasonOf returns why a call failed, without its address.
func reasonOf(err error) string { return httpx.Reason(err) }

func versionOf(h http.Header) Version { return Version{h.Get("ETag"), h.Get("Last-Modified")} }

// setConditionalHeaders requests any other version than v.
func (v Version) setConditionalHeaders(h http.Header) {
	if v.tag != "" {
		h.Set("If-None-Match", v.tag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}

// http returns the client of all calls. The caller holds c.mu.
func (c *Client) http() *http.Client {
	if c.client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy, transport.DialContext = httpx.Proxy, httpx.DialContext
		c.client = &http.Client{Transport: transport, CheckRedirect: c.redirect}
	}
	return c.client
}

// redirect checks one redirect.
func (c *Client) redirect(to *http.Request, via []*http.Request) error {
	httpx.LimitHeaders(to, via[0]) // the query of the address may be a signature
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return &AccessError{Address: Redacted(via[0].URL.String()), Why: fmt.Sprintf("stopped after %d redirects", maxRedirects)}
	case to.URL.Scheme != "http" && to.URL.Scheme != "https":
		return &AccessError{Address: Redacted(via[0].URL.String()), Why: "redirect to " + to.URL.Scheme + "://"}
	case from.Scheme == "https" && to.URL.Scheme == "http":
		return &AccessError{Address: Redacted(via[0].URL.String()), Why: "redirect from https to http"}
	case c.Allow != nil:
		return c.Allow(to.URL.String())
	}
	return nil
}

// get requests a document, unless the server still has version have.
func (c *Client) get(ctx context.Context, address string, have Version) (io.ReadCloser, Version, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil || req.URL.Host == "" {
		return nil, have, &AccessError{Address: Redacted(address), Why: "invalid URL", Err: err}
	}
	req.Header.Set("User-Agent", httpx.UserAgent())
	have.setConditionalHeaders(req.Header)
	c.mu.Lock()
	client := c.http()
	c.mu.Unlock()
	resp, err := client.Do(req)
	if err != nil {
		return nil, have, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.Body, versionOf(resp.Header), nil
	case http.StatusNotFound, http.StatusGone:
		err = &NotFoundError{Address: Redacted(address)}
	default:
		err = &StatusError{Address: Redacted(address), Code: resp.StatusCode}
		if resp.StatusCode == http.StatusNotModified && have != (Version{}) {
			err = errUnchanged
		}
	}
	_ = resp.Body.Close() // its body is a page for browsers
	return nil, have, err
}

// watch cancels a call whose server sends nothing for too long, and explains errors.
func (c *Client) watch(ctx context.Context, address string, open func(context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	wait := c.IdleTimeout
	if wait <= 0 {
		wait = idleTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &timeoutReader{ctx: ctx, cancel: cancel, address: address, wait: wait}
	w.timer = time.AfterFunc(wait, func() { cancel(errIdleTimeout) })
	in, err := open(ctx)
	if w.timer.Stop(); err != nil {
		err = w.explain(err)
		cancel(nil)
		return nil, err
	}
	w.in = in
	return w, nil
}

// timeoutReader is a body with a time limit for each read.
type timeoutReader struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	in      io.ReadCloser
	address string
	wait    time.Duration
}

func (w *timeoutReader) Read(p []byte) (int, error) {
	w.timer.Reset(w.wait)
	n, err := w.in.Read(p)
	w.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		return n, w.explain(err)
	}
	return n, err
}

func (w *timeoutReader) Close() error {
	w.timer.Stop()
	w.cancel(nil) // before Close, so that it does not read the rest of the body
	return w.in.Close()
}

// explain recognizes timeouts and cancellation.
func (w *timeoutReader) explain(err error) error {
	cause := context.Cause(w.ctx)
	switch {
	case errors.Is(cause, errIdleTimeout):
		return &AccessError{Address: Redacted(w.address), Why: fmt.Sprintf("no data from server for %s", strings.TrimSuffix(w.wait.String(), "0s")), Err: cause}
	case errors.Is(cause, context.DeadlineExceeded):
		return &AccessError{Address: Redacted(w.address), Why: httpx.Reason(cause), Err: cause}
	case cause != nil:
		return &AccessError{Address: Redacted(w.address), Why: "canceled", Err: cause}
	}
	return asReasonError(w.address, err)
}
