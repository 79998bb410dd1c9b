package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/transcript"
)

const (
	maxBody = 16 << 10 // bytes of a JSON body
	maxID   = 256      // bytes of a session's id
)

// serve calls the endpoint of the method.
func (s *Service) serve(w http.ResponseWriter, r *http.Request, methods map[string]endpoint) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := methods[method]
	if serve == nil {
		allowed := slices.Sorted(maps.Keys(methods))
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(w, r, problem.New(http.StatusMethodNotAllowed, "method_not_allowed", "use %s", strings.Join(allowed, " or ")))
		return
	}
	if err := serve(w, r); err != nil {
		s.fail(w, r, err)
	}
}

// fail writes an error as the response.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && errors.Is(r.Context().Err(), context.Canceled) {
		p = problem.New(statusClientClosed, "cancelled", "the request was cancelled")
	}
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.opts.Log.ErrorContext(r.Context(), "a request for sessions failed", "path", r.URL.Path, "error", err.Error())
	}
	problem.Write(w, p)
}

// statusClientClosed is the status for a client that has gone; it is only logged.
const statusClientClosed = 499

// problemOf returns the response for an error. Its text has no details of the server.
func problemOf(err error) *problem.Problem {
	if p := problem.Of(err); p != nil {
		return p
	}
	if e, ok := errors.AsType[*memory.MessageError](err); ok {
		if e.Unknown {
			return unknownMessage()
		}
		return invalid("/message", "%s", e.Problem)
	}
	if e, ok := errors.AsType[*memory.TurnError](err); ok {
		return invalid("/turn", "there is no turn %d: the turns are 1 to %d", e.Turn, e.Last)
	}
	if _, ok := errors.AsType[*memory.SessionExistsError](err); ok {
		p := invalid("/id", "there is a session with this id")
		p.Status, p.Code, p.Title = http.StatusConflict, "session_exists", http.StatusText(http.StatusConflict)
		return p
	}
	if e, ok := errors.AsType[*transcript.LineError](err); ok {
		return invalid(fmt.Sprint("line ", e.Line), "%s", e.Err)
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large", "the body is larger than %d bytes", e.Limit)
	}
	if errors.Is(err, errBusy) {
		return problem.New(http.StatusConflict, "session_busy", "the session is busy with a run; cancel it, or try again when it has ended")
	}
	if _, ok := errors.AsType[*memory.StoreError](err); ok {
		return problem.New(http.StatusServiceUnavailable, "store_unavailable", "the store of the sessions is not available")
	}
	return problem.New(http.StatusInternalServerError, "internal", "the server failed; its log has the reason")
}

// invalid is the problem with the value of one field.
func invalid(pointer, format string, args ...any) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "invalid_value", "")
	p.Detail = fmt.Sprintf("%s: %s", strings.TrimPrefix(pointer, "/"), fmt.Sprintf(format, args...))
	p.Errors = []problem.Field{{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}}
	return p
}

// badParameter is invalid for a query parameter.
func badParameter(name, format string, args ...any) *problem.Problem {
	p := invalid(name, format, args...)
	p.Status, p.Code, p.Title = http.StatusBadRequest, "invalid_parameter", http.StatusText(http.StatusBadRequest)
	return p
}

// notFound is the same for missing sessions and for sessions of other callers.
func notFound() *problem.Problem {
	return problem.New(http.StatusNotFound, "unknown_session", "there is no such session")
}

// unknownMessage is the problem with a message that is not part of the conversation.
func unknownMessage() *problem.Problem {
	return problem.New(http.StatusNotFound, "unknown_message", "the conversation has no such message")
}

// errBusy reports that a change waited too long for an active turn.
var errBusy = errors.New("the session is busy")

// waiting calls change within the time that a request waits for an active turn.
func (s *Service) waiting(ctx context.Context, change func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, s.opts.Wait, errBusy)
	defer cancel()
	err := change(bounded)
	if err != nil && errors.Is(context.Cause(bounded), errBusy) {
		return errBusy
	}
	return err
}

// pollRuns is how often changing looks whether a run has ended.
const pollRuns = 50 * time.Millisecond

// changing is waiting for a session that no run may use, on any server: its turn would
// follow the change.
func (s *Service) changing(ctx context.Context, stored string, change func(context.Context) error) error {
	return s.waiting(ctx, func(ctx context.Context) error {
		for {
			_, busy, err := s.running(ctx, stored)
			if err != nil {
				return err
			}
			if !busy {
				return change(ctx)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollRuns):
			}
		}
	})
}

// intParameter returns a query parameter, or a default; it is an error below 1 and above high.
func intParameter(r *http.Request, name string, byDefault, high int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > high {
		return 0, badParameter(name, "it must be a whole number from 1 to %d", high)
	}
	return n, nil
}

// readJSON reads an object of at most limit bytes from the body; unknown fields are errors.
func readJSON(w http.ResponseWriter, r *http.Request, to any, limit int64) error {
	if err := checkType(r, "application/json"); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	raw, err := host.ReadBody(w, r)
	if err != nil {
		return err
	}
	if _, err := schema.ParseBody(raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err = dec.Decode(to)
	if err == nil && dec.More() {
		err = errors.New("text after the object")
	}
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return invalid("/"+strings.ReplaceAll(wrong.Field, ".", "/"), "it must not be %s", wrong.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name, _ := strconv.Unquote(field)
		return invalid("/"+name, "the request has no such field")
	}
	return problem.New(http.StatusBadRequest, "malformed_json", "the body must be a JSON object")
}

// checkType returns an error if the body is declared to be of none of the media types.
func checkType(r *http.Request, types ...string) error {
	declared := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(declared)
	if declared == "" || err == nil && slices.Contains(types, kind) {
		return nil
	}
	return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the Content-Type must be %s", types[0])
}

// bodyError returns the error for a body that could not be read.
func bodyError(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large || problem.Of(err) != nil {
		return err
	}
	return problem.New(http.StatusBadRequest, "incomplete_body", "the body could not be read")
}

// checkID returns an error for an id that a client must not choose.
func checkID(pointer, id string) error {
	switch {
	case id == "" || len(id) > maxID:
		return invalid(pointer, "an id has 1 to %d bytes", maxID)
	case id == "." || id == "..": // no client sends them in a path
		return invalid(pointer, "an id is not %s", id)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return invalid(pointer, "an id has no control characters")
	}
	return nil
}

// storedSession returns the stored id of the session that the path names.
func storedSession(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if checkID("id", id) != nil {
		return "", notFound()
	}
	return access.PrincipalOf(r.Context()).StoredSession(id), nil
}

// writeJSON writes a response.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // fails only if the client is gone
	return nil
}
