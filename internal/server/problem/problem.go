// Package problem writes errors of the HTTP API as application/problem+json (RFC 9457).
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MediaType is the content type of an error response.
const MediaType = "application/problem+json"

// Problem is an error response. Its text is for the client: it contains neither
// secrets nor details of the server.
type Problem struct {
	Status     int           `json:"status"`           // HTTP status
	Code       string        `json:"code"`             // stable name of the error, such as not_found
	Title      string        `json:"title"`            // the same for all errors of a code
	Detail     string        `json:"detail,omitempty"` // what is wrong with this request
	Errors     []Field       `json:"errors,omitempty"` // the fields of the request that are wrong
	RetryAfter time.Duration `json:"-"`                // header Retry-After; 0 for none
	Continues  bool          `json:"-"`                // the run goes on: without a key the same request again would be another run
}

// Field is an error in one field of a request.
type Field struct {
	Pointer string `json:"pointer"` // JSON pointer to the value in the body, such as /messages/0/role; or the name of a header or query parameter
	Detail  string `json:"detail"`  // what is wrong with it
}

// New returns a problem whose title is the text of the status.
func New(status int, code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Title: http.StatusText(status), Detail: fmt.Sprintf(format, args...)}
}

// Error returns the detail, or the title if there is none.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Seconds returns RetryAfter in whole seconds, rounded up, as the header has it.
func (p *Problem) Seconds() string { return strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))) }

// Of returns the problem that err is or wraps, nil for none.
func Of(err error) *Problem {
	p, _ := errors.AsType[*Problem](err)
	return p
}

// Write writes p as the response.
func Write(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-store")
	p.setRetryAfter(h)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client is gone
}

func (p *Problem) setRetryAfter(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", p.Seconds())
	}
}

// OpenAIPath is the path below which errors have the form of OpenAI's API.
const OpenAIPath = "/v1/"

// Respond writes p as the response to r: in OpenAI's form below OpenAIPath, which its
// clients understand, and as Write does elsewhere. It must not be called after the
// response has begun.
func Respond(w http.ResponseWriter, r *http.Request, p *Problem) {
	if !strings.HasPrefix(r.URL.Path, OpenAIPath) {
		Write(w, p)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if !p.temporary() || p.Continues && r.Header.Get("Idempotency-Key") == "" {
		h.Set("X-Should-Retry", "false") // clients would repeat the request
	} else {
		p.setRetryAfter(h)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(OpenAIBody{p.OpenAI()}) // fails only if the client is gone
}

// temporary reports whether the same request may succeed later.
func (p *Problem) temporary() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return p.Code == "session_busy"
}

// OpenAIBody is the body of an error of OpenAI's API.
type OpenAIBody struct {
	Error OpenAIError `json:"error"`
}

// OpenAIError is an error of OpenAI's API.
type OpenAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`  // the kind of error, which follows from the status
	Param   *string `json:"param"` // the parameter that is wrong, such as messages[0].role; nil for none
	Code    string  `json:"code"`  // stable name of the error
}

// OpenAI returns the error in OpenAI's form.
func (p *Problem) OpenAI() OpenAIError {
	e := OpenAIError{Message: p.Error(), Type: openAIType(p.Status), Code: p.Code}
	if code, ok := openAICodes[p.Code]; ok {
		e.Code = code
	}
	if len(p.Errors) > 0 {
		param := openAIParam(p.Errors[0].Pointer)
		e.Param = &param
		e.Message = strings.Replace(e.Message, p.Errors[0].Pointer+": ", param+": ", 1)
		for _, other := range p.Errors[1:] {
			e.Message += "; " + openAIParam(other.Pointer) + ": " + other.Detail
		}
	}
	return e
}

// openAICodes are the codes for which OpenAI has a different name.
var openAICodes = map[string]string{
	"unknown_flow":       "model_not_found",
	"rate_limited":       "rate_limit_exceeded",
	"unauthorized":       "invalid_api_key",
	"invalid_credential": "invalid_api_key",
}

func openAIType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// openAIParam writes a JSON pointer as OpenAI does: /messages/0/role is messages[0].role.
func openAIParam(pointer string) string {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return pointer
	}
	var b strings.Builder
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case part != "" && strings.Trim(part, "0123456789") == "":
			b.WriteString("[" + part + "]")
		case b.Len() > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}
