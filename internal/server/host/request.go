package host

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/memory"
)

// MaxBody is the largest body, in bytes, that a server without access control reads.
const MaxBody = 32 << 20

// maxSessionID is the longest id of a session.
const maxSessionID = 256

// BodyLimit returns the largest body of a request, in bytes: MaxBody, or no limit in
// addition to that of access control.
func BodyLimit(r *http.Request) int64 {
	if access.LimitsBody(r) {
		return math.MaxInt64
	}
	return MaxBody
}

// LimitBody limits the body of a request, unless access control does. The error is a
// *problem.Problem.
func LimitBody(w http.ResponseWriter, r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_encoding", "the body must not be compressed: the Content-Encoding is %q", coding)
	}
	r.Body = http.MaxBytesReader(w, r.Body, BodyLimit(r))
	return nil
}

// ReadBody reads the body of a request, which is JSON. The error is a *problem.Problem.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := LimitBody(w, r); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, BodyProblem(err, "incomplete_body", "the body could not be read")
	}
	if !utf8.Valid(body) {
		return nil, problem.New(http.StatusBadRequest, "malformed_json", "the body is not UTF-8")
	}
	return body, nil
}

// BodyProblem returns the problem of a body that could not be read: one with the code and
// the detail, unless the body is too large or too slow.
func BodyProblem(err error, code, detail string) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large", "the body is larger than %d bytes", large.Limit)
	}
	if p := problem.Of(err); p != nil {
		return p
	}
	return problem.New(http.StatusBadRequest, code, "%s", detail)
}

// RequireJSON returns a *problem.Problem if the body is declared to be something else
// than JSON.
func RequireJSON(r *http.Request) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") == "" || err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the Content-Type must be application/json")
}

// CheckSession returns a *problem.Problem for a session id that a client must not choose.
// where is the place of the id in the request.
func CheckSession(where, id string) error {
	var detail string
	switch {
	case len(id) > maxSessionID:
		detail = "the session id is longer than 256 bytes"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		detail = "the session id has control characters"
	case id == "." || id == "..":
		detail = "the session id cannot be a part of an address"
	default:
		return nil
	}
	p := problem.New(http.StatusBadRequest, "invalid_session", "%s", detail)
	p.Errors = []problem.Field{{Pointer: where, Detail: detail}}
	return p
}

// NewSession returns the id of a session that a client did not name.
func NewSession() string { return "s_" + rand.Text() }

// AnswerProblem returns the *problem.Problem of an answer that a run did not accept. Errors
// of a store are returned as they are, nil for nil.
func AnswerProblem(err error) error {
	if _, ok := errors.AsType[*memory.StoreError](err); ok || err == nil || problem.Of(err) != nil {
		return err
	}
	switch {
	case errors.Is(err, runs.ErrNoRequest):
		return problem.New(http.StatusNotFound, "unknown_request", "%s", err)
	case errors.Is(err, runs.ErrAnswered):
		return problem.New(http.StatusConflict, "answered", "%s", err)
	}
	return problem.New(http.StatusUnprocessableEntity, "invalid_answer", "%s", err)
}

// TurnProblem returns the problem of a turn that another turn of its session prevented,
// nil for other errors.
func TurnProblem(err error) *problem.Problem {
	var busy *memory.BusyError
	var interrupted *memory.InterruptedError
	switch {
	case errors.As(err, &busy):
		return problem.New(http.StatusConflict, "session_busy", "another turn of the session is active")
	case errors.As(err, &interrupted):
		return problem.New(http.StatusConflict, "interrupted", "a newer turn of the session replaced this one")
	}
	return nil
}
