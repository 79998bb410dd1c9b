package wire

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/model"
)

// maxMessage is how many characters of a server's words go into an error.
const maxMessage = 400

// APIError is an error object as OpenAI and most others send it, and as servers really fill it.
type APIError struct {
	Message string          `json:"message"` // what happened, in the server's words
	Type    string          `json:"type"`    // its kind
	Status  json.RawMessage `json:"status"`  // Google's name for the kind; others put a number there
	Code    json.RawMessage `json:"code"`    // text, or a number that mostly is an HTTP status
	Details json.RawMessage `json:"details"` // Google's: among others how long to wait
}

// code is the provider's own code, or else the type of the fault.
func (f APIError) code() string {
	var text string
	if json.Unmarshal(f.Code, &text) == nil && text != "" {
		return text
	}
	if json.Unmarshal(f.Status, &text) == nil && f.Type == "" && text != "" {
		return text
	}
	if f.Type != "" || len(f.Code) == 0 || string(f.Code) == "null" {
		return f.Type
	}
	return string(f.Code)
}

// status is the HTTP status that a fault in a stream names, 0 where it names none.
func (f APIError) status() int {
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
	case "overloaded_error": // Anthropic's, for which it has a status of its own
		return 529
	case "rate_limit_error", "rate_limit_exceeded", "tokens", "requests":
		return http.StatusTooManyRequests
	}
	return 0
}

// delay is how long Google asks to wait, 0 where a fault does not say.
func (f APIError) delay() time.Duration {
	var details []struct {
		Delay string `json:"retryDelay"`
	}
	if json.Unmarshal(f.Details, &details) != nil {
		return 0
	}
	for _, d := range details {
		if wait, err := time.ParseDuration(d.Delay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

// StreamFault is an error that a server sent in the middle of a stream.
type StreamFault struct {
	Fault APIError // what it sent
}

// Error is the server's words.
func (e *StreamFault) Error() string { return e.Fault.Message }

// ParseFault finds the fault in a body: an object below "error", a text there,
// or the fields at the top. It tells whether there is one.
func ParseFault(raw []byte) (APIError, bool) {
	var body struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		APIError
	}
	if json.Unmarshal(raw, &body) != nil {
		return APIError{}, false
	}
	if f, ok := ReadFault(body.Error); ok {
		return f, true
	}
	if body.Message == "" && len(body.Detail) > 0 {
		if json.Unmarshal(body.Detail, &body.Message) != nil {
			body.Message = string(body.Detail)
		}
	}
	return body.APIError, body.Message != ""
}

// ReadFault reads the value of "error".
func ReadFault(raw json.RawMessage) (APIError, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return APIError{}, false
	}
	var f APIError
	if json.Unmarshal(raw, &f) == nil {
		return f, true
	}
	if json.Unmarshal(raw, &f.Message) == nil {
		return f, true
	}
	return APIError{Message: string(raw)}, true
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
func (s *Server) fault(message string) *model.Error {
	return &model.Error{Model: s.Info.ID, Endpoint: s.Info.Endpoint, Message: message}
}

// unwritable makes an error of a request that is not one to be sent.
func (s *Server) unwritable(cause error) error {
	return s.fault("the request cannot be written: " + cause.Error())
}

// refusal makes an error of an answer that is not 200.
func (s *Server) refusal(resp *http.Response) error {
	raw, _ := readAll(resp.Body, maxFault) // what could be read must do
	after := httpx.RetryAfter(resp.Header, time.Now())
	if f, ok := ParseFault(raw); ok {
		return s.refused(f, resp.StatusCode, after)
	}
	var message string
	switch text := httpx.SingleLine(string(raw), maxMessage); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		message = "the server points elsewhere; is base_url right?"
		if to, err := resp.Location(); err == nil {
			message = fmt.Sprintf("the server points to %s; is base_url right?", httpx.Server(to))
		}
	case text == "":
		message = http.StatusText(resp.StatusCode)
	case text[0] == '<':
		message = "the server answered a web page instead of JSON; is base_url right?"
	default:
		message = text
	}
	return s.refused(APIError{Message: message}, resp.StatusCode, after)
}

// refused makes an error of a fault that the server described.
func (s *Server) refused(f APIError, status int, after time.Duration) error {
	e := s.fault(httpx.Scrub(httpx.SingleLine(f.Message, maxMessage), s.Key))
	e.Status, e.Code, e.RetryAfter = status, f.code(), max(after, f.delay())
	e.Temporary = temporary(status, e.Code)
	switch {
	case status == http.StatusUnauthorized && s.Key == "":
		e.Message = "the server wants a credential and none is set: " + e.Message
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Message = fmt.Sprintf("the server refused the credential %s: %s", s.Credential, e.Message)
	case e.Message == "":
		e.Message = "the server reported an error without saying which"
	}
	return e
}

// unreadable makes an error of an answer that is not what the protocol says.
func (s *Server) unreadable(resp *http.Response, raw []byte, cause error) error {
	if sent, ok := errors.AsType[*StreamFault](cause); ok {
		return s.refused(sent.Fault, sent.Fault.status(), 0)
	}
	if f, ok := ParseFault(raw); ok { // some gateways answer 200 and an error
		return s.refused(f, f.status(), 0)
	}
	text := httpx.SingleLine(httpx.Scrub(string(raw), s.Key), 80)
	switch {
	case text == "":
		return s.fault("the server answered nothing")
	case text[0] == '<':
		return s.fault("the server answered a web page instead of JSON; is base_url right?")
	case json.Valid(raw):
		return s.fault("the server's answer is not a " + s.form.Answers + ": " + cause.Error())
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = "something unnamed"
	}
	return s.fault(fmt.Sprintf("the server answered %s that is not JSON: %s", httpx.SingleLine(kind, 60), text))
}

// broken makes an error of a connection that failed; what says how far it got.
func (s *Server) broken(ctx context.Context, what string, err error) error {
	if errors.Is(err, ErrTooLong) {
		return s.fault(err.Error())
	}
	e := s.fault(fmt.Sprintf("%s %s: %s", what, s.Info.Endpoint, httpx.Reason(err)))
	var cert *tls.CertificateVerificationError
	e.Err, e.Temporary = err, !errors.As(err, &cert)
	return unlessCancelled(ctx, e)
}

// unlessCancelled answers e, or the context's error where that is why.
func unlessCancelled(ctx context.Context, e *model.Error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e
}

// emptyAnswer makes an error of an answer that says nothing, in the end.
func (s *Server) emptyAnswer(cause error) error {
	return s.fault("the server's answer is not a " + s.form.Answers + ": " + cause.Error())
}

// Shape says in a user's words that JSON is not what was expected.
func Shape(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return errors.New("it is not a JSON object")
		}
		return fmt.Errorf("its %q cannot be %s", kind.Field, kind.Value)
	}
	return errors.New("it is not JSON")
}
