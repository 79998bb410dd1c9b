package server

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/server/a2a"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/agui"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/openai"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/ui"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// methods are the methods that a route may have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// routes returns the handler of all resources.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /app":                               s.getApp,
		"GET /flows":                             s.listFlows,
		"GET /flows/{flow}/graph":                s.getGraph,
		"POST /flows/{flow}":                     s.runFlow,
		"POST /flows/{flow}/stream":              s.stream,
		"GET /flows/{flow}/stream/{chat}":        s.resumeStream,
		"GET /flows/{flow}/stream/{chat}/stream": s.resumeStream,
		"GET /runs":                              s.listRuns,
		"GET /runs/{run}":                        s.getRun,
		"GET /runs/{run}/events":                 s.runEvents,
		"GET /runs/{run}/trace":                  s.getTrace,
		"POST /feedback":                         s.postFeedback,
		mcpserver.Path:                           s.serveMCP,
		"GET /approvals":                         s.listApprovals,
		"POST /approvals/{run}":                  s.decide,
		"POST /runs/{run}/answer":                s.answerRun,
		"POST /runs/{run}/cancel":                s.cancelRun,
		"GET /openapi.json":                      s.getOpenAPI,
		"GET /docs":                              s.getDocs,
		"GET /docs/style.css":                    getStyle,
		"GET /healthz":                           s.healthy,
		"GET /readyz":                            s.ready,
	} {
		mux.HandleFunc(pattern, handler)
	}
	agui.Mount(mux, s.Host())
	a2a.Mount(mux, s.Host())
	mux.Handle("GET /metrics", s.metricsHandler())
	mux.Handle("/sessions", s.sessions)
	mux.Handle("/sessions/", s.sessions)
	openai.Mount(mux, s.Host())
	mux.Handle("/", s.fallback(mux))
	return s.measured(s.redacted(cleaned(mux)))
}

// metricsHandler serves the metrics, or says that the program has none.
func (s *Server) metricsHandler() http.Handler {
	if s.metrics != nil {
		return s.metrics.Handler()
	}
	missing := &parts.MissingError{Kind: parts.Telemetry, Name: telemetry.PartMetrics}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(http.StatusNotFound, "not_found", "%s", missing))
	})
}

// fallback answers requests for which there is no route.
func (s *Server) fallback(mux *http.ServeMux) http.Handler {
	var pages http.Handler
	if !s.opts.NoUI {
		pages = ui.Handler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed := allowedMethods(mux, r); len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			problem.Respond(w, r, problem.New(http.StatusMethodNotAllowed, "method_not_allowed", "the resource has the methods %s", strings.Join(allowed, ", ")))
			return
		}
		if pages != nil && !strings.HasPrefix(r.URL.Path, problem.OpenAIPath) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			pages.ServeHTTP(w, r)
			return
		}
		problem.Respond(w, r, problem.New(http.StatusNotFound, "not_found", "there is no resource %s", r.URL.Path))
	})
}

// allowedMethods returns the methods that the resource of a request has.
func allowedMethods(mux *http.ServeMux, r *http.Request) []string {
	var allowed []string
	for _, method := range methods {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	return slices.Compact(allowed)
}

// cleaned refuses paths with empty segments and dots. The mux would redirect them, to an
// address outside of the prefix under which the server may be mounted.
func cleaned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.URL.EscapedPath()
		if clean := path.Clean(given); clean != given && clean+"/" != given {
			problem.Write(w, problem.New(http.StatusNotFound, "not_found", "there is no resource %s", r.URL.Path))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// healthy answers GET /healthz: the process can answer.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready answers GET /readyz: the server accepts runs and its store can be written.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		problem.Write(w, shuttingDown())
		return
	}
	if err := s.probe.check(r.Context(), s.state()); err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// getOpenAPI answers GET /openapi.json.
func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.current.Load().OpenAPI(access.PrincipalOf(r.Context()))) // fails only if the client is gone
}

// flowBody is a flow as clients see it.
type flowBody struct {
	ID            string         `json:"id"`
	Description   *string        `json:"description"`
	Interface     *string        `json:"interface_type"`
	SessionInputs []string       `json:"session_inputs"`
	Endpoints     flowEndpoints  `json:"endpoints"`
	InputSchema   any            `json:"input_schema"`
	OutputSchema  any            `json:"output_schema"`
	Examples      []string       `json:"examples"`
	Feedback      map[string]any `json:"feedback"`
	Telemetry     bool           `json:"telemetry_enabled"`
}

type flowEndpoints struct {
	REST   string  `json:"rest"`
	Stream *string `json:"stream"`
	OpenAI *string `json:"openai"` // of conversational flows: the flow is a model there
	AGUI   *string `json:"agui"`
}

// listFlows answers GET /flows with the flows that the caller may call.
func (s *Server) listFlows(w http.ResponseWriter, r *http.Request) {
	a, p := s.current.Load(), access.PrincipalOf(r.Context())
	out := []flowBody{}
	for _, f := range a.Flows {
		if access.Allowed(f.Spec, p) {
			out = append(out, describeFlow(a.Application, f))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

func describeFlow(a *host.Application, f *schema.Flow) flowBody {
	out := flowBody{ID: f.ID(), SessionInputs: []string{}, Examples: []string{}, InputSchema: f.InputSchema(), OutputSchema: f.OutputSchema(),
		Feedback: f.Feedback(), Telemetry: a.App.Spec().Telemetry != nil}
	out.Endpoints.REST = "/flows/" + f.ID()
	if f.Spec.Description != "" {
		out.Description = &f.Spec.Description
	}
	if f.Message != nil {
		completions := "/v1/chat/completions"
		out.Endpoints.OpenAI = &completions
	}
	for _, v := range f.Session {
		out.SessionInputs = append(out.SessionInputs, v.ID)
	}
	if name := f.Interface(); name != "" {
		stream := out.Endpoints.REST + "/stream"
		out.Interface, out.Endpoints.Stream = &name, &stream
		if f.Conversational() {
			agent := out.Endpoints.REST + "/agui"
			out.Endpoints.AGUI = &agent
		}
		out.Examples = append(out.Examples, f.Spec.Interface.Examples...)
	}
	return out
}

// appBody describes the application and the server.
type appBody struct {
	ID             string          `json:"id"`
	Description    string          `json:"description"`
	Version        string          `json:"version"`
	Flows          int             `json:"flows"`
	Authentication string          `json:"authentication"`
	Principal      *string         `json:"principal"`
	Simulated      []string        `json:"simulated"`
	ReloadError    *ReloadError    `json:"reload_error"`
	Features       map[string]bool `json:"features"`
}

// getApp answers GET /app.
func (s *Server) getApp(w http.ResponseWriter, r *http.Request) {
	a, p := s.current.Load(), access.PrincipalOf(r.Context())
	doc := a.App.Spec()
	out := appBody{ID: doc.ID, Description: doc.Description, Version: s.opts.Version, Flows: len(a.IDs(p)), Authentication: "none",
		Simulated: simulated(a, p), ReloadError: s.reload.Load(), Features: map[string]bool{"batch": true, "traces": s.recorder != nil, "feedback": a.acceptsFeedback(), "tests": s.opts.Test != nil}}
	if s.opts.Access != nil {
		out.Authentication = s.opts.Access.Authentication()
	}
	if p.Name != "" {
		out.Principal = &p.Name
	}
	writeJSON(w, http.StatusOK, out)
}

// simulated returns the ids of the models of a principal's flows that a mock replaces.
func simulated(a *generation, p access.Principal) []string {
	ids, seen := []string{}, map[string]bool{}
	for _, f := range a.Flows {
		if !access.Allowed(f.Spec, p) {
			continue
		}
		models, err := a.App.Models(f.ID())
		if err != nil {
			continue // a run reports it
		}
		for _, m := range models {
			if id := m.Replaces; id != "" && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

const (
	probePeriod = 5 * time.Second // for which a store that was written is taken for writable: anyone may call /readyz
	probeBytes  = 8 << 10         // more than a full disk has left in its last page
)

// storeProbe finds out whether the store can be written. It is safe for concurrent use.
type storeProbe struct {
	mu      sync.Mutex
	written time.Time // when the store was written last
}

// check writes a record, unless one was written a moment ago. A server that writes it at the
// same moment has found out the same.
func (p *storeProbe) check(ctx context.Context, app store.Application) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.written.IsZero() && time.Since(p.written) < probePeriod {
		return nil
	}
	records := app.Records(appstate.Probe)
	rec, err := records.Get(ctx, probeID)
	if err != nil {
		return err
	}
	value := make([]byte, probeBytes)
	_, _ = rand.Read(value) // never fails
	err = records.Write(ctx, probeID, store.RecordChange{Version: rec.Version, Next: store.NextVersion(rec.Version), Values: map[string][]byte{probeID: value}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	p.written = time.Now()
	return nil
}

// probeID is the id of the record, and the name of its value.
const probeID = "probe"

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS []byte

// getStyle answers GET /docs/style.css.
func getStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(docsCSS) // fails only if the client is gone
}

var docsPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("docs").Parse(docsHTML)) })

// docsFlow is a flow on the page.
type docsFlow struct {
	ID, Description, Interface, Example string
	Inputs, Outputs                     []docsField
}

type docsField struct {
	Name, Type string
	Optional   bool
}

// getDocs answers GET /docs with a page about the resources of the server.
func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) {
	a, p := s.current.Load(), access.PrincipalOf(r.Context())
	page := struct {
		ID, Description, Address string
		Flows                    []docsFlow
	}{a.App.Spec().ID, a.App.Spec().Description, s.opts.Access.Address(r), nil}
	for _, f := range a.Flows {
		if access.Allowed(f.Spec, p) {
			page.Flows = append(page.Flows, docsOf(f))
		}
	}
	var b bytes.Buffer
	if err := docsPage().Execute(&b, page); err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // fails only if the client is gone
}

func docsOf(f *schema.Flow) docsFlow {
	return docsFlow{ID: f.ID(), Description: f.Spec.Description, Interface: f.Interface(), Example: string(f.Example()), Inputs: docsFields(f.Inputs), Outputs: docsFields(f.Outputs)}
}

func docsFields(vars []*spec.Variable) []docsField {
	fields := make([]docsField, len(vars))
	for i, v := range vars {
		t := v.Type
		t.Optional = false
		fields[i] = docsField{v.ID, t.String(), v.IsOptional()}
	}
	return fields
}
