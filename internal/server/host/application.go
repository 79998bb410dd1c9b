// Package host is what the protocols of a server share: the application that is served,
// its runs, and how errors are answered.
package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// Host is the server that a protocol belongs to. It is safe for concurrent use.
type Host struct {
	Runs           *runs.Manager
	Current        func() *Application                             // what is served now; a request uses one version of it
	Fail           func(http.ResponseWriter, *http.Request, error) // answers with a problem, and logs errors of the server
	Heartbeat      time.Duration                                   // between comments in streams without events
	Log            *slog.Logger
	State          func() store.Application   // the records of the application
	Inputs         *Inputs                    // first values of session inputs
	Authentication string                     // which credentials clients need: none, key or oidc
	Version        string                     // of the program
	Address        func(*http.Request) string // of the server, as the client of a request knows it

	// Fetch returns the content of a file that a client names by its address. Its error is
	// a *problem.Problem.
	Fetch func(ctx context.Context, url string) (data []byte, mediaType string, err error)
	// Record adds a conversation of a flow to the sessions of its owner. session is the stored
	// id, message the newest message of the user.
	Record func(ctx context.Context, flow, session, message string) error
	// Failure returns the problem of a run that could not process its rows, nil for none.
	Failure func(*runs.Run) *problem.Problem
}

// Application is one version of what is served.
type Application struct {
	App   *runtime.App
	Flows []*schema.Flow // in document order

	byID    map[string]*schema.Flow
	openAPI func() []byte // the description of all flows
}

// NewApplication returns the contracts of an application.
func NewApplication(app *runtime.App) *Application {
	a := &Application{App: app, byID: map[string]*schema.Flow{}}
	for _, f := range app.Spec().Flows {
		c := schema.NewFlow(f)
		a.Flows = append(a.Flows, c)
		a.byID[f.ID] = c
	}
	a.openAPI = sync.OnceValue(func() []byte { return schema.OpenAPI(app.Spec(), a.Flows) })
	return a
}

// OpenAPI returns the description for a principal: of the flows that it may call.
func (a *Application) OpenAPI(p access.Principal) []byte {
	hidden := func(f *schema.Flow) bool { return !access.Allowed(f.Spec, p) }
	if !slices.ContainsFunc(a.Flows, hidden) {
		return a.openAPI()
	}
	return schema.OpenAPI(a.App.Spec(), slices.DeleteFunc(slices.Clone(a.Flows), hidden))
}

// Flow returns the flow with an id that a principal may call. The error is a
// *problem.Problem.
func (a *Application) Flow(p access.Principal, id string) (*schema.Flow, error) {
	f := a.byID[id]
	if f == nil {
		return nil, problem.New(http.StatusNotFound, "unknown_flow", "there is no flow %q%s", id, diag.DidYouMean(id, a.IDs(p)))
	}
	if !access.Allowed(f.Spec, p) {
		return nil, problem.New(http.StatusForbidden, "not_allowed", "the caller may not call flow %s", id)
	}
	return f, nil
}

// IDs returns the ids of the flows that a principal may call.
func (a *Application) IDs(p access.Principal) []string {
	var ids []string
	for _, f := range a.Flows {
		if access.Allowed(f.Spec, p) {
			ids = append(ids, f.ID())
		}
	}
	return ids
}

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

// Inputs keeps the first values of session inputs. It reads the store once for each
// request of a flow that has such inputs. It is safe for concurrent use.
type Inputs struct{ state func() store.Application }

// NewInputs returns the session inputs that an application has stored.
func NewInputs(state func() store.Application) *Inputs { return &Inputs{state} }

// SessionInputs are the stored inputs of a session.
type SessionInputs struct {
	flow    *schema.Flow
	session string
	version int64
	values  map[string]any
}

// id returns the id of the record.
func (s *SessionInputs) id() string { return appstate.OfFlow(s.session, s.flow.ID()) }

// Has reports whether an input has a value. s may be nil.
func (s *SessionInputs) Has(v *spec.Variable) bool {
	if s == nil {
		return false
	}
	_, ok := s.values[v.ID]
	return ok
}

// Known returns the stored inputs of a stored session of a flow; nil if the flow has none.
func (i *Inputs) Known(ctx context.Context, flow *schema.Flow, session string) (*SessionInputs, error) {
	if len(flow.Session) == 0 {
		return nil, nil
	}
	s := &SessionInputs{flow: flow, session: session, values: map[string]any{}}
	rec, err := i.state().Records(appstate.Inputs).Get(ctx, s.id())
	if err != nil {
		return nil, err
	}
	s.version = rec.Version
	for _, v := range flow.Session {
		raw, ok := rec.Values[v.ID]
		if !ok {
			continue
		}
		parsed, err := value.Parse(string(raw))
		if err == nil && parsed != nil {
			parsed, err = value.Coerce(v.Type, parsed)
		}
		if err != nil {
			return nil, fmt.Errorf("the stored input %s of the session is damaged: %w", v.ID, err)
		}
		s.values[v.ID] = parsed
	}
	return s, nil
}

// Apply replaces the session inputs of the rows by their first values, and stores new
// ones. s is the result of Known.
func (i *Inputs) Apply(ctx context.Context, s *SessionInputs, rows ...map[string]any) error {
	if s == nil {
		return nil
	}
	added := map[string][]byte{}
	for _, row := range rows {
		for _, v := range s.flow.Session {
			if x, ok := s.values[v.ID]; ok {
				row[v.ID] = x
			} else if x, ok := row[v.ID]; ok {
				s.values[v.ID] = x
				added[v.ID] = value.JSON(x)
			}
		}
	}
	if len(added) == 0 {
		return nil
	}
	err := i.state().Records(appstate.Inputs).Write(ctx, s.id(), store.RecordChange{Version: s.version, Next: store.NextVersion(s.version), Values: added})
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	first, err := i.Known(ctx, s.flow, s.session) // another request was first
	if err != nil {
		return err
	}
	return i.Apply(ctx, first, rows...) // it may have set other inputs
}

// Copy copies the inputs of a stored session of a flow to another one.
func (i *Inputs) Copy(ctx context.Context, flow *schema.Flow, from, to string) error {
	records := i.state().Records(appstate.Inputs)
	rec, err := records.Get(ctx, appstate.OfFlow(from, flow.ID()))
	if err != nil || rec.Version == 0 {
		return err
	}
	return records.Write(ctx, appstate.OfFlow(to, flow.ID()), store.RecordChange{Next: store.NextVersion(0), Values: rec.Values})
}

// RecordOf decodes the inputs that a chat client sends in addition to its messages.
func RecordOf(raw map[string]json.RawMessage) (*value.Record, error) {
	fields := make([]value.Field, 0, len(raw))
	for name, text := range raw {
		v, err := value.Parse(string(text))
		if err != nil {
			return nil, err
		}
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	return value.NewRecord("", fields...), nil
}

// Location returns the address of a resource of the server, an absolute and escaped path,
// relative to that of a request. So it is right below any prefix under which the server
// is mounted.
func Location(r *http.Request, resource string) string {
	depth := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "." + resource
	}
	return strings.Repeat("../", depth-1) + ".." + resource
}
