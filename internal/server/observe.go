package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/steps"
)

// Limits of the recorded traces.
const (
	tracedRuns  = 500
	tracedBytes = 64 << 20
)

var errNoMCP = problem.New(http.StatusServiceUnavailable, "mcp_unavailable", "the flows of the application cannot be offered to MCP clients")

// observe returns a context whose runs are traced and measured. run is the id under which
// the spans can be read; empty for none.
func (s *Server) observe(ctx context.Context, run string) context.Context {
	ctx = s.current.Load().exporter.Context(ctx)
	if s.recorder != nil && run != "" {
		ctx = s.recorder.Context(ctx, run)
	}
	if s.metrics == nil {
		return ctx
	}
	return steps.WithObserver(ctx, s.metrics)
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the writer for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// measured counts and logs requests.
func (s *Server) measured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		defer s.use()()
		sw := &statusWriter{ResponseWriter: w}
		if ctx := telemetry.RemoteContext(r.Context(), r.Header); ctx != r.Context() {
			r = r.WithContext(ctx)
		}
		defer s.note(sw, r, began) // also if the handler breaks the connection
		next.ServeHTTP(sw, r)
	})
}

// note counts and logs a request that was answered. It is not part of measured, whose stack
// each open stream keeps.
func (s *Server) note(sw *statusWriter, r *http.Request, began time.Time) {
	took := time.Since(began)
	route := routeOf(r.Pattern)
	if route == "" || route == "/" {
		route = "other"
	}
	if s.metrics != nil {
		s.metrics.Request(route, r.Method, sw.status, took)
	}
	level := slog.LevelDebug
	if sw.status >= http.StatusInternalServerError && sw.status != http.StatusServiceUnavailable {
		level = slog.LevelWarn // the reasons of 503 are logged once a second
	}
	if s.log.Enabled(r.Context(), level) {
		h := sw.Header()
		s.log.Log(r.Context(), level, "request", "method", r.Method, "path", r.URL.Path, "status", sw.status, "duration", took,
			"principal", access.PrincipalOf(r.Context()).Name, "session", h.Get("X-Session-Id"), "run", h.Get("X-Run-Id"))
	}
}

// routeOf returns the pattern of a route without its method.
func routeOf(pattern string) string {
	if _, route, ok := strings.Cut(pattern, " "); ok {
		return route
	}
	return pattern
}

// getTrace answers GET /runs/{run}/trace.
func (s *Server) getTrace(w http.ResponseWriter, r *http.Request) {
	run, err := s.findRun(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := struct {
		Spans    []telemetry.Span `json:"spans"`
		Complete bool             `json:"complete"`
	}{Spans: []telemetry.Span{}}
	if s.recorder != nil {
		if spans, complete, ok := s.recorder.Spans(run.ID); ok {
			out.Spans, out.Complete = spans, complete
		}
	}
	writeJSON(w, http.StatusOK, out)
}
