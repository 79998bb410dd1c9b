// Package accesstoken caches the access tokens of cloud identities: a token is requested
// once for concurrent callers, and again before it expires.
package accesstoken

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// Token is an access token.
type Token struct {
	Text    string
	Expires time.Time // zero for a token that does not expire
}

// early is how long before its end a token is replaced, so that a request that waits does
// not carry an expired one.
const early = 3 * time.Minute

// Source returns tokens. It is safe for concurrent use.
type Source struct {
	fetch  func(context.Context) (Token, error)
	cached chan Token // a mutex that holds the newest token: only who receives it may request another
}

// NewSource makes a Source of tokens that fetch requests. A fetch ends with the context of the
// caller that started it; then the next caller starts another one.
func NewSource(fetch func(context.Context) (Token, error)) *Source {
	s := &Source{fetch: fetch, cached: make(chan Token, 1)}
	s.cached <- Token{}
	return s
}

// Token returns a token that is valid now. It waits no longer than ctx. If a new token
// cannot be requested, the cached one is used while it is valid.
func (s *Source) Token(ctx context.Context) (string, error) {
	var token Token
	select {
	case token = <-s.cached:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { s.cached <- token }()
	if token.validFor(early) {
		return token.Text, nil
	}
	fresh, err := s.fetch(ctx)
	switch {
	case err == nil:
		token = fresh
		return token.Text, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case token.validFor(0):
		return token.Text, nil
	}
	return "", err
}

// validFor reports whether the token is valid for that long.
func (t Token) validFor(d time.Duration) bool {
	return t.Text != "" && (t.Expires.IsZero() || time.Until(t.Expires) > d)
}

// Error is a failed request for a token, without secrets.
type Error struct {
	Identity string // whose token it is
	Message  string // one line
	Again    bool   // whether a later request may succeed
}

// Error returns one line.
func (e *Error) Error() string { return e.Identity + ": no token: " + e.Message }

// Temporary reports whether a later request may succeed.
func (e *Error) Temporary() bool { return e.Again }

// maxAnswer limits the bytes of a response that are read.
const maxAnswer = 1 << 20

// Client returns an HTTP client for token servers. It does not follow redirects: a secret is
// for the server that is declared.
func Client() *http.Client {
	return &http.Client{Transport: httpx.Transport(1), Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Request sends a request for a token and decodes the JSON response to answer. The secret
// is removed from errors.
func Request(client *http.Client, req *http.Request, identity, secret string, answer any) error {
	failed := func(again bool, format string, args ...any) error {
		text := httpx.SingleLine(httpx.Scrub(fmt.Sprintf(format, args...), secret), 300)
		return &Error{Identity: identity, Message: text, Again: again}
	}
	resp, err := client.Do(req) //nolint:gosec // the address is that of the document or of the environment
	if err != nil {
		if req.Context().Err() != nil {
			return req.Context().Err()
		}
		return failed(true, "cannot reach %s: %s", httpx.Server(req.URL), httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return failed(true, "lost the connection to %s: %s", httpx.Server(req.URL), httpx.Reason(err))
	}
	if resp.StatusCode != http.StatusOK {
		again := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		return failed(again, "%s: HTTP %d: %s", httpx.Server(req.URL), resp.StatusCode, message(raw))
	}
	if json.Unmarshal(raw, answer) != nil {
		return failed(false, "%s: the response is not that of a token server", httpx.Server(req.URL))
	}
	return nil
}

// message returns the message of an error of a token server.
func message(raw []byte) string {
	var e struct {
		Code        json.RawMessage `json:"error"` // a text, or an object with a message
		Description string          `json:"error_description"`
		Message     string          `json:"message"`
		Errors      []string        `json:"errors"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return httpx.Excerpt(string(raw), 300)
	}
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case e.Description != "":
		return e.Description
	case json.Unmarshal(e.Code, &object) == nil && object.Message != "":
		return object.Message
	case e.Message != "":
		return e.Message
	case len(e.Errors) > 0:
		return e.Errors[0]
	}
	return string(raw)
}
