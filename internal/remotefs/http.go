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
	maxRedirects = 5                // followed at most for one address
	idleTimeout  = 30 * time.Second // what a server may take, where Client.Silence is 0
)

// errIdleTimeout ends the call of a server that says nothing any more.
var errIdleTimeout = fmt.Errorf("silent: %w", os.ErrDeadlineExceeded)

// http answers the client of all calls; c.mu is held or nobody else is there yet.
func (c *Client) http() *http.Client {
	if c.client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		c.client = &http.Client{Transport: transport, CheckRedirect: c.redirect}
	}
	return c.client
}

// redirect decides about one redirection.
func (c *Client) redirect(to *http.Request, before []*http.Request) error {
	to.Header.Del("Referer") // would carry the query, which may be a signature
	from := before[len(before)-1].URL
	switch {
	case len(before) > maxRedirects:
		return &AccessError{Address: Redacted(before[0].URL.String()), Why: fmt.Sprintf("the server redirects more than %d times", maxRedirects)}
	case to.URL.Scheme != "http" && to.URL.Scheme != "https":
		return &AccessError{Address: Redacted(before[0].URL.String()), Why: "the server redirects to " + to.URL.Scheme + "://"}
	case from.Scheme == "https" && to.URL.Scheme == "http":
		return &AccessError{Address: Redacted(before[0].URL.String()), Why: "the server redirects from https to http"}
	case c.Allow != nil:
		return c.Allow(to.URL.String())
	}
	return nil
}

// get asks a server for a document, unless it is still of the version that the caller has.
func (c *Client) get(ctx context.Context, address string, have Version) (io.ReadCloser, Version, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil || req.URL.Host == "" {
		return nil, have, &AccessError{Address: Redacted(address), Why: "is not an address that can be called", Err: err}
	}
	req.Header.Set("User-Agent", "qtype")
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
	_ = resp.Body.Close() // what it says of the fault is a page for browsers
	return nil, have, err
}

// watch ends a call whose server falls silent, and puts its errors in plain words.
func (c *Client) watch(ctx context.Context, address string, open func(context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	wait := c.Silence
	if wait <= 0 {
		wait = idleTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &timeoutReader{ctx: ctx, cancel: cancel, address: address, wait: wait}
	w.timer = time.AfterFunc(wait, func() { cancel(errIdleTimeout) })
	in, err := open(ctx)
	if w.timer.Stop(); err != nil {
		err = w.told(err)
		cancel(nil)
		return nil, err
	}
	w.in = in
	return w, nil
}

// timeoutReader is a body whose every piece must come in time.
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
		return n, w.told(err)
	}
	return n, err
}

func (w *timeoutReader) Close() error {
	w.timer.Stop()
	w.cancel(nil) // before closing: the rest of a body is not worth reading
	return w.in.Close()
}

// told names silence and cancelling for what they are.
func (w *timeoutReader) told(err error) error {
	cause := context.Cause(w.ctx)
	switch {
	case errors.Is(cause, errIdleTimeout):
		return &AccessError{Address: Redacted(w.address), Why: fmt.Sprintf("the server said nothing for %s", strings.TrimSuffix(w.wait.String(), "0s")), Err: cause}
	case errors.Is(cause, context.DeadlineExceeded):
		return &AccessError{Address: Redacted(w.address), Why: httpx.Reason(cause), Err: cause}
	case cause != nil:
		return &AccessError{Address: Redacted(w.address), Why: "was cancelled", Err: cause}
	}
	return asReasonError(w.address, err)
}
