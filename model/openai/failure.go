package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/internal/outbound"
	"github.com/qtype-dev/qtype/model"
)

// maxMessage is how many characters of a server's words go into an error.
const maxMessage = 400

// fault is the error object of OpenAI's protocol, as servers really fill it.
type fault struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // text, or a number that mostly is an HTTP status
}

// code is the provider's own code, or else the type of the fault.
func (f fault) code() string {
	var text string
	if json.Unmarshal(f.Code, &text) == nil && text != "" {
		return text
	}
	if f.Type != "" || len(f.Code) == 0 || string(f.Code) == "null" {
		return f.Type
	}
	return string(f.Code)
}

// status is the HTTP status that a fault in a stream names, 0 where it names none.
func (f fault) status() int {
	var text string
	if json.Unmarshal(f.Code, &text) != nil {
		text = string(f.Code)
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 400 && n <= 599 {
		return n
	}
	switch f.Type {
	case "server_error", "api_error", "internal_server_error":
		return http.StatusInternalServerError
	case "rate_limit_error", "rate_limit_exceeded", "tokens", "requests":
		return http.StatusTooManyRequests
	}
	return 0
}

// parseFault finds the fault in a body: an object below "error", a text there,
// or the fields at the top. It tells whether there is one.
func parseFault(raw []byte) (fault, bool) {
	var body struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		fault
	}
	if json.Unmarshal(raw, &body) != nil {
		return fault{}, false
	}
	if f, ok := readFault(body.Error); ok {
		return f, true
	}
	if body.Message == "" && len(body.Detail) > 0 {
		if json.Unmarshal(body.Detail, &body.Message) != nil {
			body.Message = string(body.Detail)
		}
	}
	return body.fault, body.Message != ""
}

// readFault reads the value of "error".
func readFault(raw json.RawMessage) (fault, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return fault{}, false
	}
	var f fault
	if json.Unmarshal(raw, &f) == nil {
		return f, true
	}
	if json.Unmarshal(raw, &f.Message) == nil {
		return f, true
	}
	return fault{Message: string(raw)}, true
}

// temporary tells whether a later call may succeed. A 429 for an empty account
// is not: OpenAI sends it as insufficient_quota.
func temporary(status int, code string) bool {
	switch {
	case code == "insufficient_quota":
		return false
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// fault makes an error of ours.
func (c *Client) fault(status int, message string) *model.Error {
	return &model.Error{Model: c.config.Info.ID, Endpoint: c.shown, Status: status, Message: message}
}

// refusal makes an error of an answer that is not 200.
func (c *Client) refusal(resp *http.Response) error {
	raw, _ := readAll(resp.Body, maxFault) // what could be read must do
	after := outbound.RetryAfter(resp.Header, time.Now())
	if f, ok := parseFault(raw); ok {
		return c.refused(f, resp.StatusCode, after)
	}
	var message string
	switch text := outbound.Line(string(raw), maxMessage); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		message = "the server points elsewhere; is base_url right?"
		if to, err := resp.Location(); err == nil {
			message = fmt.Sprintf("the server points to %s; is base_url right?", outbound.Server(to))
		}
	case text == "":
		message = http.StatusText(resp.StatusCode)
	case text[0] == '<':
		message = "the server answered a web page instead of JSON; is base_url right?"
	default:
		message = text
	}
	return c.refused(fault{Message: message}, resp.StatusCode, after)
}

// refused makes an error of a fault that the server described.
func (c *Client) refused(f fault, status int, after time.Duration) error {
	e := c.fault(status, outbound.Scrub(outbound.Line(f.Message, maxMessage), c.config.Key))
	e.Code, e.RetryAfter = f.code(), after
	e.Temporary = temporary(status, e.Code)
	switch {
	case status == http.StatusUnauthorized && c.config.Key == "":
		e.Message = "the server wants a credential and none is set: " + e.Message
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Message = fmt.Sprintf("the server refused the credential %s: %s", c.config.Credential, e.Message)
	case e.Message == "":
		e.Message = "the server reported an error without saying which"
	}
	return e
}

// unreadable makes an error of an answer that is not what the protocol says.
func (c *Client) unreadable(resp *http.Response, raw []byte, cause error) error {
	if sent, ok := errors.AsType[*streamFault](cause); ok {
		return c.refused(sent.fault, sent.fault.status(), 0)
	}
	if f, ok := parseFault(raw); ok { // some gateways answer 200 and an error
		return c.refused(f, f.status(), 0)
	}
	text := outbound.Line(outbound.Scrub(string(raw), c.config.Key), 80)
	switch {
	case text == "":
		return c.fault(0, "the server answered nothing")
	case text[0] == '<':
		return c.fault(0, "the server answered a web page instead of JSON; is base_url right?")
	case json.Valid(raw):
		return c.fault(0, "the server's answer is no chat completion: "+cause.Error())
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = "something unnamed"
	}
	return c.fault(0, fmt.Sprintf("the server answered %s that is not JSON: %s", outbound.Line(kind, 60), text))
}

// broken makes an error of a connection that failed; what says how far it got.
func (c *Client) broken(ctx context.Context, what string, err error) error {
	if errors.Is(err, errTooLong) {
		return c.fault(0, err.Error())
	}
	e := c.fault(0, fmt.Sprintf("%s %s: %s", what, c.shown, outbound.Reason(err)))
	var cert *tls.CertificateVerificationError
	e.Err, e.Temporary = err, !errors.As(err, &cert)
	return c.unlessCancelled(ctx, e)
}

// unlessCancelled answers e, or the context's error where that is why.
func (c *Client) unlessCancelled(ctx context.Context, e *model.Error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e
}
