package server

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/server/a2a"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/agui"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/openai"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/ui"
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
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.Handle("/sessions", s.sessions)
	mux.Handle("/sessions/", s.sessions)
	openai.Mount(mux, s.Host())
	mux.Handle("/", s.fallback(mux))
	return s.measured(s.redacted(cleaned(mux)))
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
