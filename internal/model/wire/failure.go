package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// maxMessage limits the characters of a server's message in an error.
const maxMessage = 400

// APIError is an error object of OpenAI, with the variations of other providers.
type APIError struct {
	Message string          `json:"message"` // the server's message
	Type    string          `json:"type"`    // the kind of error
	Status  json.RawMessage `json:"status"`  // Google's name of the kind; a number elsewhere
	Code    json.RawMessage `json:"code"`    // text, or a number that is mostly an HTTP status
	Param   json.RawMessage `json:"param"`   // the parameter that is wrong
	Details json.RawMessage `json:"details"` // Google's: among others how long to wait
}

// code returns the provider's error code, or else the type of the error.
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

// status returns the HTTP status that an error in a stream names, 0 for none.
func (f APIError) status() int {
	var text string
	if json.Unmarshal(f.Code, &text) != nil {
		text = string(f.Code)
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return cmp.Or(wordStatus(text), wordStatus(f.Type))
}

// wordStatus returns the HTTP status of a code or type of an error, 0 for an unknown one. Images have
// codes of their own, which blame the request.
func wordStatus(word string) int {
	switch word {
	case "server_error", "api_error", "internal_server_error", "vector_store_timeout":
		return http.StatusInternalServerError
	case "overloaded_error": // Anthropic's, with the status 529
		return 529
	case "server_is_overloaded", "slow_down":
		return http.StatusServiceUnavailable
	case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota", "tokens", "requests":
		return http.StatusTooManyRequests
	case "timeout_error", "failed_to_download_image":
		return http.StatusGatewayTimeout
	case "authentication_error", "invalid_api_key":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error", "model_not_found":
		return http.StatusNotFound
	case "invalid_request_error", "invalid_prompt", "invalid_encrypted_content", "content_filter", "cyber_policy", "bio_policy",
		"misalignment_policy_violation", "data_residency_mismatch":
		return http.StatusBadRequest
	}
	if tooLongCodes[word] || strings.Contains(word, "image") {
		return http.StatusBadRequest
	}
	return 0
}

// apiDetail is an element of Google's details of an error.
type apiDetail struct {
	Delay      string `json:"retryDelay"` // how long to wait
	Violations []struct {
		Quota string `json:"quotaId"` // the used up limit, such as GenerateRequestsPerDayPerProjectPerModel
	} `json:"violations"`
}

// details returns Google's details, nil for others.
func (f APIError) details() (list []apiDetail) {
	if json.Unmarshal(f.Details, &list) != nil {
		return nil
	}
	return list
}

// OfEvent returns the error of an event whose type is error. It has a code; if that is not known, the
// server has failed.
func (f APIError) OfEvent() APIError {
	if f.Type == "error" {
		f.Type = ""
	}
	if f.status() == 0 {
		f.Type = "server_error"
	}
	return f
}

// delay returns how long Google requests to wait, 0 for nothing.
func (f APIError) delay() time.Duration {
	for _, d := range f.details() {
		if wait, err := time.ParseDuration(d.Delay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

// usedUp reports whether waiting does not help for a rate limit: the account has no money, or has
// used up the limit of a day.
func (f APIError) usedUp() bool {
	const noMoney = "insufficient_quota" // OpenAI
	if f.code() == noMoney || f.Type == noMoney {
		return true
	}
	for _, d := range f.details() {
		for _, v := range d.Violations {
			if strings.Contains(v.Quota, "PerDay") {
				return true
			}
		}
	}
	return false
}

// StreamError is an error that a server sent within a stream.
type StreamError struct {
	API APIError // the error object
}

// Error returns the server's message.
func (e *StreamError) Error() string { return e.API.Message }

// ParseAPIError finds an error in a body: an object under "error", a text there, or fields
// at the top level; of a list, as Google sends it, in its first element. It reports whether
// there is one.
func ParseAPIError(raw []byte) (APIError, bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var body struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Msg    string          `json:"msg"` // of gateways
		APIError
	}
	if json.Unmarshal(raw, &body) != nil {
		return APIError{}, false
	}
	if f, ok := ReadAPIError(body.Error); ok {
		return f, true
	}
	if body.Message == "" && len(body.Detail) > 0 {
		if json.Unmarshal(body.Detail, &body.Message) != nil {
			body.Message = string(body.Detail)
		}
	}
	body.Message = cmp.Or(body.Message, body.Msg)
	return body.APIError, body.Message != ""
}

// ReadAPIError decodes the value of "error".
func ReadAPIError(raw json.RawMessage) (APIError, bool) {
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

// temporary reports whether a later call may succeed.
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// newError returns an error about the server.
func (s *Server) newError(message string) *model.Error {
	return &model.Error{Model: s.Info.ID, Endpoint: s.Info.Endpoint, Message: message}
}

// authorizationError returns the error of a request that got no credentials: no request
// was sent.
func (s *Server) authorizationError(ctx context.Context, cause error) error {
	e := s.newError(httpx.SingleLine(cause.Error(), maxMessage))
	var failed interface{ Temporary() bool }
	e.Err, e.Temporary = cause, errors.As(cause, &failed) && failed.Temporary()
	return unlessCancelled(ctx, e)
}

// requestError returns the error of a request that cannot be encoded.
func (s *Server) requestError(cause error) error {
	return s.newError("invalid request: " + cause.Error())
}

// statusError returns the error of a response whose status is not a success.
func (s *Server) statusError(resp *http.Response) error {
	raw, _ := readAll(resp.Body, maxErrorBody, resp.ContentLength) // an incomplete body is good enough
	after := requestedDelay(resp.Header, time.Now())
	if f, ok := ParseAPIError(raw); ok {
		if f.code() == "" { // AWS sends the code as a header, with the address of its schema
			f.Type, _, _ = strings.Cut(resp.Header.Get("X-Amzn-Errortype"), ":")
		}
		return s.rejected(f, resp.StatusCode, after)
	}
	var message string
	switch text := httpx.Excerpt(string(raw), maxMessage); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		message = "the server points elsewhere; is base_url right?"
		if to, err := resp.Location(); err == nil {
			message = fmt.Sprintf("the server redirects to %s; check base_url", httpx.Server(to))
		}
	case httpx.IsPage(string(raw)):
		message = PageMessage(resp.StatusCode, text)
	case text == "":
		message = http.StatusText(resp.StatusCode)
	default:
		message = text
	}
	return s.rejected(APIError{Message: message}, resp.StatusCode, after)
}

// PageMessage is the message of a web page in place of an answer. Pages of failed servers and proxies say
// nothing of the address.
func PageMessage(status int, title string) string {
	message := "the response is a web page instead of JSON"
	if title != "" {
		message += ": " + title
	}
	if status >= http.StatusInternalServerError {
		return message
	}
	return message + "; check base_url"
}

// rejected returns the error that a server described.
func (s *Server) rejected(f APIError, status int, after time.Duration) error {
	e := s.newError(httpx.Excerpt(httpx.Scrub(f.Message, s.Key), maxMessage))
	e.Status, e.Code, e.RetryAfter = status, f.code(), max(after, f.delay())
	e.Temporary = temporary(status)
	if f.usedUp() {
		e.Temporary, e.RetryAfter = false, 0
	}
	e.TooLong, e.Requested, e.Limit = tooLong(status, e.Code, f.Message)
	if e.TooLong {
		e.Temporary = false
	}
	e.Opaque = status == http.StatusBadRequest && !e.TooLong && f.opaque()
	switch {
	case status == http.StatusUnauthorized && s.Key == "" && s.Authorize == nil:
		e.Message = "the server wants a credential and none is set: " + e.Message
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Message = fmt.Sprintf("the server rejected the credential %s: %s", s.Credential, e.Message)
	case e.Message == "":
		e.Message = "the server reported an error without saying which"
	}
	return e
}

// responseError returns the error of a response that does not follow the protocol.
func (s *Server) responseError(resp *http.Response, raw []byte, cause error) error {
	if sent, ok := errors.AsType[*StreamError](cause); ok {
		return s.rejected(sent.API, sent.API.status(), 0)
	}
	if f, ok := ParseAPIError(raw); ok { // some gateways send an error with status 200
		return s.rejected(f, f.status(), 0)
	}
	text := httpx.Excerpt(httpx.Scrub(string(raw), s.Key), 80)
	switch {
	case httpx.IsPage(string(raw)):
		return s.newError(PageMessage(resp.StatusCode, text))
	case text == "":
		return s.newError("the response is empty")
	case json.Valid(raw):
		return s.newError("invalid " + s.form.Answers + ": " + cause.Error())
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = "something unnamed"
	}
	return s.newError(fmt.Sprintf("the response of type %s is not JSON: %s", httpx.SingleLine(kind, 60), text))
}

// connectionError returns the error of a failed connection; what is the operation.
func (s *Server) connectionError(ctx context.Context, what string, err error) error {
	if errors.Is(err, ErrTooLong) {
		return s.newError(err.Error())
	}
	e := s.newError(fmt.Sprintf("%s %s: %s", what, s.Info.Endpoint, httpx.Reason(err)))
	var cert *tls.CertificateVerificationError
	e.Err, e.Temporary = err, !errors.As(err, &cert)
	return unlessCancelled(ctx, e)
}

// unlessCancelled returns e, or the error of the context if that has ended.
func unlessCancelled(ctx context.Context, e *model.Error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e
}

// emptyAnswer returns the error of a response that is complete but has no answer.
func (s *Server) emptyAnswer(cause error) error {
	return s.newError("invalid " + s.form.Answers + ": " + cause.Error())
}

// Shape rewrites an error of encoding/json for users.
func Shape(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		if kind.Field == "" {
			return errors.New("not a JSON object")
		}
		return fmt.Errorf("%q cannot be %s", kind.Field, kind.Value)
	}
	return errors.New("not JSON")
}

// reasoningProtocol is a Protocol whose servers can refuse the reasoning that goes back to them.
type reasoningProtocol interface {
	// RefusesReasoning reports whether an error refuses the reasoning in a request.
	RefusesReasoning(failure *model.Error) bool
	// IsReasoning reports whether a block is reasoning that a request can do without.
	IsReasoning(b *chat.Block) bool
}

// withReasoning sends a request. If the provider refuses the reasoning in it, it is sent without the
// reasoning of earlier turns, and then without any.
func (c Chat) withReasoning(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	p, ok := c.protocol.(reasoningProtocol)
	if !ok {
		return c.whole(ctx, req, emit)
	}
	messages, dropped := withoutBlocks(req.Messages, len(req.Messages), func(m *chat.Message, b *chat.Block) bool { return p.IsReasoning(b) && c.refused.has(m.ID) })
	req.Messages = messages
	answer, err := c.whole(ctx, req, emit)
	for _, end := range []int{TurnStart(messages), len(messages)} {
		failure, ok := errors.AsType[*model.Error](err)
		if !ok || !p.RefusesReasoning(failure) {
			break
		}
		kept, ids := withoutBlocks(req.Messages, end, func(_ *chat.Message, b *chat.Block) bool { return p.IsReasoning(b) })
		if len(ids) == 0 {
			continue
		}
		req.Messages, dropped = kept, slices.Concat(dropped, ids)
		if answer, err = c.whole(ctx, req, emit); err == nil {
			c.refused.add(dropped)
		}
	}
	if len(dropped) > 0 {
		noteDropped(answer, err, fmt.Sprintf("the reasoning of %s, which the provider refused", textfmt.Count(len(dropped), "earlier answer")))
	}
	return answer, err
}

// withoutBlocks returns messages without some of the blocks before a message, and the ids of those
// that had some.
func withoutBlocks(messages []chat.Message, end int, leave func(*chat.Message, *chat.Block) bool) (kept []chat.Message, ids []string) {
	kept = messages
	for i := range messages[:end] {
		m := &messages[i]
		first := 0
		for first < len(m.Blocks) && !leave(m, &m.Blocks[first]) {
			first++
		}
		if first == len(m.Blocks) {
			continue
		}
		if ids == nil {
			kept = slices.Clone(messages)
		}
		blocks := slices.Clone(m.Blocks[:first])
		for j := first + 1; j < len(m.Blocks); j++ {
			if !leave(m, &m.Blocks[j]) {
				blocks = append(blocks, m.Blocks[j])
			}
		}
		kept[i].Blocks, ids = blocks, append(ids, m.ID)
	}
	return kept, ids
}

// maxRefusals is how many messages a client remembers.
const maxRefusals = 4096

// refusals are messages whose reasoning the provider has refused, so that the next request of their
// conversation is not refused too. Their loss costs one request. It is safe for concurrent use.
type refusals struct {
	mu  sync.Mutex
	ids map[string]bool
}

// add remembers messages by their ids.
func (r *refusals) add(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) > maxRefusals {
		r.ids = map[string]bool{}
	}
	for _, id := range ids {
		if id != "" {
			r.ids[id] = true
		}
	}
}

// has reports whether a message is known.
func (r *refusals) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}
