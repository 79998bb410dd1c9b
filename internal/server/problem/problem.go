// Package problem writes errors of the HTTP API as application/problem+json (RFC 9457).
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
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
