package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

const (
	maxAnswer     = 32 << 20         // bytes of an answer
	maxErrorText  = 400              // characters of a server's message
	callTimeout   = 60 * time.Second // of one attempt
	bodyLimit     = 64 << 10         // bytes of the body of an error
	connections   = 64               // that are kept open to a server
	jsonMediaType = "application/json"
)

// retries is the policy of calls, which have no effect on the server.
var retries = httpx.Policy{MaxAttempts: 4, InitialDelay: 500 * time.Millisecond, MaxDelay: 20 * time.Second}

// NewClient returns a client for the calls of all rankers of an application.
func NewClient() *http.Client {
	return &http.Client{Transport: httpx.Transport(connections), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// server is what calls of a service share.
type server struct {
	url    string
	http   *http.Client
	secret string                            // that no message may contain; empty for none
	sign   func(*http.Request, []byte) error // adds the credentials
	policy httpx.Policy                      // of retries

}

// CallError reports a call of a service that failed.
type CallError struct {
	URL      string // what was called
	Status   int    // the HTTP status; 0 where there was no answer
	Message  string // what happened; one line
	Attempts int    // how often the request was sent
	Err      error  // the cause; may be nil

	retryAfter time.Duration
	temporary  bool
}

// Error returns one line: the server, the failure, the attempts.
func (e *CallError) Error() string {
	text := e.URL + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("HTTP %d: ", e.Status)
	}
	text += e.Message
	if e.Attempts > 1 {
		text += fmt.Sprintf(" (after %d attempts)", e.Attempts)
	}
	return text
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// post sends a request and decodes the answer.
func (s *server) post(ctx context.Context, request, answer any) error {
	body, err := textfmt.CompactJSON(request)
	if err != nil {
		return err
	}
	tries := s.policy.Start()
	for {
		raw, err := s.once(ctx, body)
		if err == nil {
			if json.Unmarshal(raw, answer) != nil {
				return &CallError{URL: s.name(), Message: "the answer is not that of a reranker; check base_url"}
			}
			return nil
		}
		var failure *CallError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &failure):
			return err
		case failure.temporary && tries.Next(ctx, failure.retryAfter):
			continue
		}
		if ctx.Err() != nil { // it ended while Next waited
			return context.Cause(ctx)
		}
		failure.Attempts = tries.Count()
		return failure
	}
}

// once makes one attempt.
func (s *server) once(ctx context.Context, body []byte) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, &CallError{URL: s.name(), Message: "the address is not a URL"}
	}
	req.Header.Set("Content-Type", jsonMediaType)
	req.Header.Set("Accept", jsonMediaType)
	req.Header.Set("User-Agent", httpx.UserAgent())
	if err := s.sign(req, body); err != nil {
		return nil, err
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, &CallError{URL: s.name(), Message: httpx.Reason(err), Err: err, temporary: true}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, s.statusError(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &CallError{URL: s.name(), Message: httpx.Reason(err), Err: err, temporary: true}
	case len(raw) > maxAnswer:
		return nil, &CallError{URL: s.name(), Message: fmt.Sprintf("the answer is longer than %d MiB", maxAnswer>>20)}
	}
	return raw, nil
}

// statusError returns the error of an answer other than 200.
func (s *server) statusError(resp *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, bodyLimit)) // an incomplete body is good enough
	e := &CallError{URL: s.name(), Status: resp.StatusCode, Message: httpx.Scrub(serverMessage(raw), s.secret), retryAfter: httpx.RetryAfter(resp.Header, time.Now())}
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	e.temporary = resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented ||
		slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooManyRequests}, resp.StatusCode)
	return e
}

// serverMessage returns the message of the body of an error, in the forms that services use.
func serverMessage(raw []byte) string {
	var body struct {
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Error   json.RawMessage `json:"error"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &body) == nil {
		text = body.Message
		for _, part := range []json.RawMessage{body.Detail, body.Error} {
			var inner struct {
				Message string `json:"message"`
			}
			switch {
			case text != "" || len(part) == 0:
			case json.Unmarshal(part, &text) == nil:
			case json.Unmarshal(part, &inner) == nil && inner.Message != "":
				text = inner.Message
			default:
				text = string(part)
			}
		}
	}
	message := httpx.Excerpt(text, maxErrorText)
	if httpx.IsPage(text) {
		return strings.TrimSuffix("the answer is a web page: "+message, ": ")
	}
	return message
}

// name returns the address for messages.
func (s *server) name() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return "the reranker"
	}
	return httpx.Server(u)
}
